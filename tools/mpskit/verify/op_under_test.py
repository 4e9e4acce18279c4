"""The patch's kernels in place of ``aten::_log_softmax``, on the device of a backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch._C import DispatchKey
from torch.utils._python_dispatch import TorchDispatchMode

from mpskit.errors import MpskitError
from mpskit.metal import compile_shader
from mpskit.verify.launch import run_plan
from mpskit.verify.plan import DEFAULT_CORES, MAX_DIMS, METAL_DTYPES, Index, Kernel, Planner
from mpskit.verify.sources import PatchSources

aten = torch.ops.aten

# No log-probability is positive, so an element that no kernel wrote stands out.
_UNWRITTEN = 1.0
_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)


class OpUnderTest(TorchDispatchMode):
    """While active, ``aten::_log_softmax`` and its ``out`` form run on the patch's kernels.

    What calls it runs on them too: ``torch.log_softmax``, ``F.cross_entropy``, a module's
    forward. It stands below autograd; the backward is torch's own. Fake, meta and other wrapped
    tensors, and those on other devices, pass untouched.

    Args:
        backend: of :func:`mpskit.metal.compile_shader`; also the device whose tensors are taken.
        kernel: forces a branch of the plan.
        index: forces an index width.
        cores: what the plan takes for the number of the GPU's cores.
        patch_dir: mirrors the PyTorch tree; None for the package's own patch set.
        sanitize: watch what the kernels do; a launch that has reports raises SanitizerError.

    Attributes:
        launches: how often each kernel was launched, by host name.
    """

    def __init__(
        self,
        backend: str = "cpu",
        *,
        kernel: Kernel | None = None,
        index: Index | None = None,
        cores: int = DEFAULT_CORES,
        patch_dir: Path | None = None,
        sanitize: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        sources = PatchSources.find(patch_dir)
        self._planner = Planner(sources)
        self._library = _compile(sources, backend, sanitize)
        self._device_type = backend
        self._how: dict[str, Any] = {"kernel": kernel, "index": index, "cores": cores}
        self.launches: Counter[str] = Counter()

    def require_launches(self, *kernels: str) -> None:
        """Refuses a test that passed without the kernels.

        Args:
            kernels: host names, or their beginnings, that must have been launched; with none
                given, any kernel will do.

        Raises:
            MpskitError: one was not.
        """
        for kernel in kernels or ("log_softmax",):
            if not any(launched.startswith(kernel) for launched in self.launches):
                raise MpskitError(
                    f"No {kernel} kernel was launched.",
                    hint="Call the op inside the context, on a tensor of the device under test.",
                )

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is aten._log_softmax.default and self._takes(args[0]):
            return self._log_softmax(*args, **kwargs)
        if func is aten._log_softmax.out and self._takes(args[0], kwargs["out"]):
            return self._log_softmax_out(*args, **kwargs)
        if func is aten.log_softmax.int_out:
            with self:
                return func._op_dk(DispatchKey.CompositeExplicitAutograd, *args, **kwargs)
        if torch.is_inference_mode_enabled() and func.namespace == "aten":
            # Composite ops arrive whole here, with _log_softmax inside.
            with self:
                decomposed = func.decompose(*args, **kwargs)
            if decomposed is not NotImplemented:
                return decomposed
        return func(*args, **kwargs)

    def _takes(self, *tensors: torch.Tensor) -> bool:
        return all(
            type(tensor) in _PLAIN_TENSORS and tensor.device.type == self._device_type
            for tensor in tensors
        )

    def _log_softmax(self, input: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:
        _refuse_unsupported(input, half_to_float)
        meta = aten._log_softmax.default(_meta_like(input), dim, half_to_float)
        out = torch.empty_strided(
            meta.shape, meta.stride(), dtype=meta.dtype, device=input.device
        ).fill_(_UNWRITTEN)
        self._launch(input, dim, out)
        return out

    def _log_softmax_out(
        self, input: torch.Tensor, dim: int, half_to_float: bool, *, out: torch.Tensor
    ) -> torch.Tensor:
        _refuse_unsupported(input, half_to_float)
        meta = _meta_like(out)
        aten._log_softmax.out(_meta_like(input), dim, half_to_float, out=meta)
        if meta.shape != out.shape:
            out.resize_(meta.shape)
        self._launch(input, dim, out)
        return out

    def _launch(self, input: torch.Tensor, dim: int, out: torch.Tensor) -> None:
        if input.numel() == 0:
            return
        if _overlaps_differently(input, out):
            input = input.clone()
        plan = self._planner.plan_tensors(input, out, dim, **self._how)
        run_plan(self._library, plan, input, out)
        self.launches.update(launch.kernel for launch in plan.launches)


def _refuse_unsupported(input: torch.Tensor, half_to_float: bool) -> None:
    """Raises what ``log_softmax_mps_out`` in LogSoftmax.mm does."""
    if half_to_float:
        raise RuntimeError("log_softmax with half to float conversion is not supported on MPS")
    if input.dtype not in METAL_DTYPES:
        name = _scalar_type_name(input.dtype)
        raise NotImplementedError(f"\"log_softmax\" not implemented for '{name}'")
    if input.dim() > MAX_DIMS:
        raise RuntimeError(
            f"log_softmax supports tensors with at most {MAX_DIMS} dimensions on MPS, "
            f"but got {input.dim()}"
        )


@lru_cache
def _compile(sources: PatchSources, backend: str, sanitize: bool) -> Any:
    return compile_shader(
        sources.kernels,
        backend=backend,
        include_dirs=sources.include_dirs,
        sanitize=sanitize,
    )


def _meta_like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def _scalar_type_name(dtype: torch.dtype) -> str:
    """ATen's name of a dtype: ``Long`` for int64."""
    return torch.empty(0, dtype=dtype).type().removeprefix("torch.").removesuffix("Tensor")


def _overlaps_differently(input: torch.Tensor, out: torch.Tensor) -> bool:
    same_elements = (
        input.storage_offset() == out.storage_offset() and input.stride() == out.stride()
    )
    shared = input.untyped_storage().data_ptr() == out.untyped_storage().data_ptr()
    return shared and not same_elements

"""The patch's kernels in place of ops, on the device of a backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch._C import DispatchKey
from torch._prims_common.wrappers import _maybe_resize_out
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from mpskit.errors import MpskitError
from mpskit.patching import default_patch_set_directory
from mpskit.verify.implementation import (
    CountedLibrary,
    Implementation,
    Kernels,
    Overload,
    compile_kernels,
)
from mpskit.verify.log_softmax import IMPLEMENTATIONS

_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)
_Handler = Callable[..., Any]


class OpUnderTest(TorchDispatchMode):
    """While active, ops run on a patch's kernels: by default, those of log_softmax.

    What calls an op runs on them too: ``torch.log_softmax``, ``F.cross_entropy``, a module's
    forward, and the backward that autograd derives. It stands below autograd. Fake, meta and
    other wrapped tensors, and those on other devices, pass untouched.

    Args:
        backend: of :func:`mpskit.metal.compile_shader`; also the device whose tensors are taken.
        implementations: of the ops to replace.
        patch_dir: mirrors the PyTorch tree; None for the package's own patch set.
        sanitize: watch what the kernels do; a launch that has reports raises SanitizerError.
        spare_float64: leave tensors of float64 to torch. MPS has none, so where the CPU stands in
            for it they are a test's references.
        options: for the implementations' ``launch``. Those of log_softmax take ``kernel`` and
            ``backward_kernel`` to force a branch of the plans, ``index`` to force an index width,
            and ``cores``, what the plans take for the number of the GPU's cores.

    Attributes:
        launches: how often each kernel was launched, by host name.
    """

    def __init__(
        self,
        backend: str = "cpu",
        *,
        implementations: Sequence[Implementation] = IMPLEMENTATIONS,
        patch_dir: Path | None = None,
        sanitize: bool = False,
        spare_float64: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device_type = backend
        self._spared = (torch.float64,) if spare_float64 else ()
        self.launches: Counter[str] = Counter()
        self._handlers: dict[Overload, _Handler] = {}
        for implementation in implementations:
            library = compile_kernels(
                implementation, backend, patch_dir=patch_dir, sanitize=sanitize
            )
            kernels = Kernels(
                CountedLibrary(library, self.launches),
                patch_dir or default_patch_set_directory(),
                options,
            )
            self._handlers |= _handlers(implementation, kernels)
        self._composites = {c for each in implementations for c in each.composites}

    def require_launches(self, *kernels: str) -> None:
        """Refuses a test that passed without the kernels.

        Args:
            kernels: host names, or their beginnings, that must have been launched; with none
                given, any kernel will do.

        Raises:
            MpskitError: one was not.
        """
        for kernel in kernels or ("",):
            if not any(launched.startswith(kernel) for launched in self.launches):
                raise MpskitError(
                    f"No {kernel} kernel was launched." if kernel else "No kernel was launched.",
                    hint="Call the op inside the context, on a tensor of the device under test.",
                )

    def __torch_dispatch__(
        self,
        func: Overload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        handler = self._handlers.get(func)
        if handler and self._takes(args, kwargs):
            return handler(*args, **kwargs)
        if func in self._composites:
            with self:
                return func._op_dk(DispatchKey.CompositeExplicitAutograd, *args, **kwargs)
        if torch.is_inference_mode_enabled() and func.namespace == "aten":
            # Composite ops arrive whole here, with the op inside.
            with self:
                decomposed = func.decompose(*args, **kwargs)
            if decomposed is not NotImplemented:
                return decomposed
        return func(*args, **kwargs)

    def _takes(self, *arguments: Any) -> bool:
        return all(
            type(leaf) in _PLAIN_TENSORS
            and leaf.device.type == self._device_type
            and leaf.dtype not in self._spared
            for leaf in tree_leaves(arguments)
            if isinstance(leaf, torch.Tensor)
        )


def _handlers(implementation: Implementation, kernels: Kernels) -> dict[Overload, _Handler]:
    """For each form of the op, the function that runs it on the kernels."""
    handlers: dict[Overload, _Handler] = {
        implementation.functional: partial(_run_functional, implementation, kernels)
    }
    if (out := implementation.out) is not None:
        handlers[out] = partial(_run_out, implementation, kernels, out)
    if (in_place := implementation.in_place) is not None:
        handlers[in_place] = partial(_run_in_place, implementation, kernels, in_place)
    return handlers


def _run_functional(
    implementation: Implementation, kernels: Kernels, *args: Any, **kwargs: Any
) -> torch.Tensor:
    run = partial(_run_functional, implementation, kernels)
    if (converted := implementation.convert(run, *args, **kwargs)) is not None:
        return converted
    implementation.refuse(*args, **kwargs)
    compute_meta = implementation.meta or implementation.functional
    meta = compute_meta(*_on_meta(args), **_on_meta(kwargs))
    (device, *_) = [a.device for a in tree_leaves((args, kwargs)) if isinstance(a, torch.Tensor)]
    out = torch.empty_strided(meta.shape, meta.stride(), dtype=meta.dtype, device=device)
    out.fill_(implementation.unwritten)
    return _launch(implementation, kernels, out, *args, **kwargs)


def _run_out(
    implementation: Implementation, kernels: Kernels, overload: Overload, *args: Any, **kwargs: Any
) -> torch.Tensor:
    (name,) = (argument.name for argument in overload._schema.arguments if argument.is_out)
    out = kwargs.pop(name)
    implementation.refuse(*args, **kwargs)
    if implementation.meta:
        meta = implementation.meta(*_on_meta(args), **_on_meta(kwargs))
        _check_out(out, meta)
    else:
        meta = _meta_like(out)
        overload(*_on_meta(args), **_on_meta(kwargs), **{name: meta})
    if meta.shape != out.shape:
        out.resize_(meta.shape)
    return _launch(implementation, kernels, out, *args, **kwargs)


def _check_out(out: torch.Tensor, meta: torch.Tensor) -> None:
    """What structured kernels do with an ``out`` that is not like the result."""
    if out.dtype != meta.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {meta.dtype}, but got {out.dtype}")
    _maybe_resize_out(out, meta.shape)  # warns where out has elements


def _run_in_place(
    implementation: Implementation, kernels: Kernels, overload: Overload, *args: Any, **kwargs: Any
) -> torch.Tensor:
    implementation.refuse(*args, **kwargs)
    overload(*_on_meta(args), **_on_meta(kwargs))
    return _launch(implementation, kernels, args[0], *args, **kwargs)


def _launch(
    implementation: Implementation, kernels: Kernels, out: torch.Tensor, *args: Any, **kwargs: Any
) -> torch.Tensor:
    if out.numel():
        implementation.launch(kernels, out, *args, **kwargs)
    return out


def _on_meta(arguments: Any) -> Any:
    return tree_map_only(torch.Tensor, _meta_like, arguments)


def _meta_like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")

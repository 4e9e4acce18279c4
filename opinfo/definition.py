"""How an op that a patch implements is tested."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import ErrorInput, OpInfo, SampleInput

from opinfo.settings import settings

# Every floating dtype that MPS has.
MPS_FLOATING_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def _brief(value: Any) -> str:
    return f"stride {list(value.stride())}" if isinstance(value, Tensor) else str(value)


@dataclass(frozen=True)
class Forcing:
    """A branch that the host code can be made to take.

    Attributes:
        name: what failures call it.
        options: keyword arguments of the op under test.
        applies: whether the branch can give right results for a sample.
        launches: host names of the kernels that the branch launches for a dtype.
    """

    name: str
    options: Mapping[str, Any]
    applies: Callable[[SampleInput], bool]
    launches: Callable[[torch.dtype], set[str]]


@dataclass(frozen=True)
class Definition:
    """An op, its inputs and the right results.

    Attributes:
        name: of the OpInfo entries.
        function: in native_functions.yaml, as a patch's ``expects`` names it.
        parameters: names of the sample's positional arguments, for messages.
        upstream: PyTorch's OpInfo entries.
        ours: our entries, each a group of samples named by its ``variant_test_name``. Two have
            tests of their own: ``one_shape``, every layout of one shape, and ``forced``, what to
            force branches on.
        reference: a sample's result in float64 on the CPU, computed without the op.
        tolerance: from sample, reference and dtype of the result, what each element may be off.
        write_to: takes ``out`` and a sample, and runs the function that the patch implements.
            PyTorch's public function may go by way of a temporary where ``out`` is strided.
        error_inputs: samples that the kernels' host code must refuse, for a device.
        under_test: makes the context in which the kernels stand in for the op; takes ``backend``,
            ``patch_dir`` and a forcing's options. Its ``launches`` counts by host name.
        forcings: the branches to force on the entry named ``forced``.
    """

    name: str
    function: str
    parameters: tuple[str, ...]
    upstream: tuple[OpInfo, ...]
    ours: tuple[OpInfo, ...]
    reference: Callable[[SampleInput], Tensor]
    tolerance: Callable[[SampleInput, Tensor, torch.dtype], Tensor]
    write_to: Callable[[Tensor, SampleInput], Tensor]
    error_inputs: Callable[[str], Iterable[ErrorInput]]
    under_test: Callable[..., Any]
    forcings: tuple[Forcing, ...] = field(default=())

    def describe(self, sample: SampleInput, notes: str = "") -> str:
        """A sample in one line: what it is called, layout of its input, arguments."""
        input = sample.input
        parts = [
            sample.name,
            f"{dtype_name(input.dtype)}{list(input.shape)}",
            "" if input.is_contiguous() else f"stride {list(input.stride())}",
            f"offset {input.storage_offset()}" if input.storage_offset() else "",
            *(f"{name}={value}" for name, value in zip(self.parameters, sample.args, strict=False)),
            *(f"{name}={_brief(value)}" for name, value in sample.kwargs.items()),
            notes,
        ]
        return ", ".join(part for part in parts if part)

    def entry(self, variant: str) -> OpInfo:
        """Our entry with that ``variant_test_name``."""
        return next(op for op in self.ours if op.variant_test_name == variant)

    def kernels_in_place(self, forcing: Forcing | None = None) -> Any:
        """The context in which the patch's kernels run the op, on the backend under test."""
        options = forcing.options if forcing else {}
        return self.under_test(
            backend=settings().backend, patch_dir=settings().patch_dir, **options
        )

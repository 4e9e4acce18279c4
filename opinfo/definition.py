"""How an op that a patch implements is tested."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import ErrorInput, OpInfo, SampleInput

from mpskit.verify import Implementation, OpUnderTest
from mpskit.verify.accuracy import few_roundings
from opinfo.settings import settings

# Every floating dtype that MPS has.
MPS_FLOATING_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def _brief(value: Any) -> str:
    return f"stride {list(value.stride())}" if isinstance(value, Tensor) else str(value)


def _few_roundings(sample: SampleInput, expected: Tensor, dtype: torch.dtype) -> Tensor:
    return few_roundings(expected, dtype)


def _no_error_inputs(device: str) -> Iterable[ErrorInput]:
    return ()


@dataclass(frozen=True)
class Forcing:
    """A branch that the host code can be made to take.

    Attributes:
        name: what failures call it.
        options: for the op under test.
        applies: whether the branch can give right results for a sample.
        launches: host names of the kernels that the branch launches for a dtype.
    """

    name: str
    options: Mapping[str, Any]
    applies: Callable[[SampleInput], bool]
    launches: Callable[[torch.dtype], set[str]]


@dataclass(frozen=True)
class Differences:
    """How the derivatives of float32 kernels are checked against central differences.

    Attributes:
        step: of a difference.
        tolerance: what a difference quotient may be off by; derive it from the step, the kernels'
            error and the op's third derivative.
        cotangent: from a result, one to differentiate the gradient with.
        small, large: from a device, samples to check whole Jacobians of, and random projections.
    """

    step: float
    tolerance: float
    cotangent: Callable[[Tensor], Tensor]
    small: Callable[[str], Iterable[SampleInput]]
    large: Callable[[str], Iterable[SampleInput]]


@dataclass(frozen=True)
class Definition:
    """An op with one floating result, its inputs and the right results.

    Attributes:
        name: of the OpInfo entries.
        function: in native_functions.yaml, as a patch's ``expects`` names it.
        implementations: the kernels that stand in for the op, and for what its gradient calls.
        reference: a sample's result in float64 on the CPU, computed without the op.
        upstream: PyTorch's OpInfo entries.
        ours: our entries, each a group of samples named by its ``variant_test_name``. Four have
            tests of their own: ``plain``, for an op without an entry of PyTorch's; ``one_shape``,
            every layout of one shape; ``outs``, what else to write to an ``out`` of every layout;
            and ``forced``, what to force branches on.
        parameters: names of the sample's positional arguments, for messages.
        tolerance: from sample, reference and dtype of the result, what each element may be off;
            by default a few roundings of float32, and one to the dtype.
        write_to: takes ``out`` and a sample, and runs the function that the patch implements;
            by default the ``out`` form of the first implementation, with the sample's arguments.
            PyTorch's public function may go by way of a temporary where ``out`` is strided.
        error_inputs: samples that the kernels' host code must refuse, for a device.
        forcings: the branches to force on the entry named ``forced``.
        gradient: from a sample and the gradient of its result, the gradient of its input in
            float64 on the CPU, and what each element of the kernels' may be off by.
        differences: how gradcheck and gradgradcheck are run.
    """

    name: str
    function: str
    implementations: tuple[Implementation, ...]
    reference: Callable[[SampleInput], Tensor]
    upstream: tuple[OpInfo, ...] = ()
    ours: tuple[OpInfo, ...] = ()
    parameters: tuple[str, ...] = ()
    tolerance: Callable[[SampleInput, Tensor, torch.dtype], Tensor] = _few_roundings
    write_to: Callable[[Tensor, SampleInput], Tensor] | None = None
    error_inputs: Callable[[str], Iterable[ErrorInput]] = _no_error_inputs
    forcings: tuple[Forcing, ...] = ()
    gradient: Callable[[SampleInput, Tensor], tuple[Tensor, Tensor]] | None = None
    differences: Differences | None = None

    def describe(self, sample: SampleInput, notes: str = "") -> str:
        """A sample in one line: what it is called, layout of its input, arguments."""
        input = sample.input
        parts = [
            sample.name,
            f"{dtype_name(input.dtype)}{list(input.shape)}",
            "" if input.is_contiguous() else f"stride {list(input.stride())}",
            f"offset {input.storage_offset()}" if input.storage_offset() else "",
            *(
                f"{name}={_brief(value)}"
                for name, value in zip(self.parameters, sample.args, strict=False)
            ),
            *(f"{name}={_brief(value)}" for name, value in sample.kwargs.items()),
            notes,
        ]
        return ", ".join(part for part in parts if part)

    def entries(self, variant: str) -> tuple[OpInfo, ...]:
        """Our entry with that ``variant_test_name``, if there is one."""
        return tuple(op for op in self.ours if op.variant_test_name == variant)

    def entry(self, variant: str) -> OpInfo:
        """Our entry with that ``variant_test_name``, which there must be."""
        (entry,) = self.entries(variant)
        return entry

    @property
    def plain(self) -> tuple[OpInfo, ...]:
        """PyTorch's entry without a variant, or ours named ``plain``."""
        upstream = tuple(op for op in self.upstream if not op.variant_test_name)
        return upstream or self.entries("plain")

    def write(self, out: Tensor, sample: SampleInput) -> Tensor:
        """Runs the function that the patch implements on ``out``, whatever its strides."""
        if self.write_to is not None:
            return self.write_to(out, sample)
        overload = self.implementations[0].out
        assert overload is not None, f"{self.name} has no form that writes to out"
        (name,) = (argument.name for argument in overload._schema.arguments if argument.is_out)
        result: Tensor = overload(sample.input, *sample.args, **sample.kwargs, **{name: out})
        return result

    def under_test(self, backend: str = "cpu", **options: Any) -> OpUnderTest:
        """The context in which the kernels stand in for the op; arguments as `OpUnderTest`'s."""
        return OpUnderTest(backend, implementations=self.implementations, **options)

    def kernels_in_place(self, forcing: Forcing | None = None) -> OpUnderTest:
        """The same on the backend and patch set under test, with a branch forced or none."""
        options = forcing.options if forcing else {}
        how = {"patch_dir": settings().patch_dir, "sanitize": settings().sanitize}
        return self.under_test(settings().backend, **how, **options)

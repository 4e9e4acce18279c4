"""What log_softmax must refuse, with the messages of LogSoftmax.mm and of ATen."""

from __future__ import annotations

import re
from collections.abc import Iterator

import torch
from torch.testing import make_tensor
from torch.testing._internal.opinfo.core import ErrorInput, SampleInput

_INTEGRAL = {torch.int64: "Long", torch.int32: "Int", torch.uint8: "Byte", torch.bool: "Bool"}


def error_inputs(device: str) -> Iterator[ErrorInput]:
    x = make_tensor((3, 5), dtype=torch.float32, device=device)
    for dim in (2, -3):
        yield _refused(
            SampleInput(x, args=(dim,)), IndexError, "Dimension out of range (expected to be in"
        )
    yield _refused(SampleInput(x[0, 0], args=(1,)), IndexError, "Dimension out of range")
    for dtype, name in _INTEGRAL.items():
        yield _not_implemented(SampleInput(x.to(dtype), args=(1,)), name)
    yield _not_implemented(SampleInput(x.to(torch.complex64), args=(1,)), "ComplexFloat")
    yield _refused(
        SampleInput(x.new_zeros((2,) * 17), args=(0,)),
        RuntimeError,
        "log_softmax supports tensors with at most 16 dimensions on MPS, but got 17",
    )
    out = torch.empty_like(x, dtype=torch.float16)
    yield _refused(
        SampleInput(x, args=(1,), kwargs={"out": out}),
        RuntimeError,
        "Expected out tensor to have dtype",
    )
    if torch.device(device).type != "mps":
        yield from _float64(device)


def _float64(device: str) -> Iterator[ErrorInput]:
    """MPS has no float64; where a device has, the kernels must not take it."""
    x = make_tensor((3, 5), dtype=torch.float64, device=device)
    yield _not_implemented(SampleInput(x, args=(1,)), "Double")
    yield _not_implemented(
        SampleInput(x.float(), args=(1,), kwargs={"dtype": torch.float64}), "Double"
    )


def _not_implemented(sample: SampleInput, scalar_type: str) -> ErrorInput:
    message = f"\"log_softmax\" not implemented for '{scalar_type}'"
    return _refused(sample, NotImplementedError, message)


def _refused(sample: SampleInput, error: type[Exception], message: str) -> ErrorInput:
    return ErrorInput(sample, error_type=error, error_regex=re.escape(message))

"""What the backward must refuse, with the messages of LogSoftmaxBackward.mm and of ATen."""

from __future__ import annotations

import re
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.testing import make_tensor
from torch.testing._internal.opinfo.core import ErrorInput, SampleInput


def error_inputs(device: str) -> Iterator[ErrorInput]:
    x = make_tensor((3, 5), dtype=torch.float32, device=device)
    yield _refused(_sample(x, x, dim=2), IndexError, "Dimension out of range")
    for dtype, name in ((torch.int64, "Long"), (torch.complex64, "ComplexFloat")):
        message = f"\"log_softmax_backward\" not implemented for '{name}'"
        yield _refused(_sample(x.to(dtype), x.to(dtype)), NotImplementedError, message)
    many = x.new_zeros((2,) * 17)
    message = "log_softmax_backward supports tensors with at most 16 dimensions on MPS, but got 17"
    yield _refused(_sample(many, many), RuntimeError, message)
    message = "log_softmax_backward with float to half conversion is not supported on MPS"
    half = SampleInput(x, args=(x, 0, torch.float16))
    yield _refused(half, RuntimeError, message)
    sample = _sample(x, x)
    sample.kwargs = {"out": torch.empty_like(x, dtype=torch.float16)}
    yield _refused(sample, RuntimeError, "Expected out tensor to have dtype")


def _sample(grad: Tensor, output: Tensor, dim: int = 1) -> SampleInput:
    return SampleInput(grad, args=(output, dim, grad.dtype))


def _refused(sample: SampleInput, error: type[Exception], message: str) -> ErrorInput:
    return ErrorInput(sample, error_type=error, error_regex=re.escape(message))

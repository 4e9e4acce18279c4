"""Sample inputs of log_softmax's backward: a gradient, an output of log_softmax, a dimension.

A sample's input is the gradient. Row lengths, shapes and layouts are those of log_softmax's own
samples; gradient and output each have layouts of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.testing import make_tensor
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from opinfo.definitions.log_softmax import large_index as far
from opinfo.definitions.log_softmax.layouts import OUT_SHAPES, SHAPES
from opinfo.definitions.log_softmax.rows import COLUMNS, LONG, MANY_ROWS, MEDIUM, SHORT
from opinfo.definitions.log_softmax_backward.forcings import planner
from opinfo.layouts import Make, Shape, expanded, layouts

_ROWS = (1, 2, 128, 257)
# The largest problems. Half and bfloat differ from float in loads and stores alone.
_MOST_ELEMENTS = {torch.float32: 2**21, torch.float16: 2**18, torch.bfloat16: 2**18}
# Row counts among which the plan's choices are compared.
_ROW_RANGE = range(1, 258)
_INTERLEAVED = (*range(0, 16, 2), *range(1, 16, 2))


def output_like(tensor: Tensor, dim: int) -> Tensor:
    """Overwrites a tensor with log_softmax of itself, as its dtype rounds that; returns it."""
    return tensor.copy_(tensor.cpu().double().log_softmax(dim))


def _sample(grad: Tensor, output: Tensor, dim: int, name: str = "") -> SampleInput:
    return SampleInput(grad, args=(output, dim, grad.dtype), kwargs={}, name=name)


def _make(device: str, dtype: torch.dtype) -> Make:
    return partial(make_tensor, dtype=dtype, device=device)


def _contiguous(make: Make, shape: Shape, dim: int) -> SampleInput:
    return _sample(make(shape), output_like(make(shape), dim), dim)


def rows(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Every length, with few and many rows."""
    make = _make(device, dtype)
    for length in (*SHORT, *MEDIUM, *LONG):
        for count in _ROWS if length < LONG[0] else (1, 2):
            if count * length <= _MOST_ELEMENTS[dtype]:
                yield _contiguous(make, (count, length), -1)
    for count, length in MANY_ROWS[:-2]:
        yield _contiguous(make, (count, length), -1)


def plan_thresholds(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """For every length, the row counts on both sides of each change of the plan's kernel."""
    make = _make(device, dtype)
    for length in (*MEDIUM, *LONG):
        strides, plan = (length, 1), planner().plan
        kernels = [
            (rows, plan((rows, length), strides, strides, strides, 1, dtype).kernel)
            for rows in _ROW_RANGE
        ]
        for (rows, kernel), (next_rows, next_kernel) in pairwise(kernels):
            if kernel != next_kernel and next_rows * length <= _MOST_ELEMENTS[dtype]:
                yield _contiguous(make, (rows, length), 1)
                yield _contiguous(make, (next_rows, length), 1)


def columns(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Reduced dimension in the middle; the rows lie side by side."""
    make = _make(device, dtype)
    for length in SHORT:
        for count in COLUMNS:
            yield _contiguous(make, (2, length, count), 1)
    for length in MEDIUM:
        for count in (1, 32, 33):
            yield _contiguous(make, (2, length, count), 1)
    for length in LONG[:3]:
        yield _contiguous(make, (length, 2), 0)


def every_dim(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Each dimension of each shape, counted from both ends."""
    for shape in SHAPES:
        for dim in range(-len(shape), len(shape)):
            yield _contiguous(_make(device, dtype), shape, dim)


def interleaved(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """As many dimensions as the op allows, none of which continues its neighbour in memory."""
    make = _make(device, dtype)
    for dim in (0, 7, 15):
        grad, output = (make((2,) * 16).permute(_INTERLEAVED) for _ in range(2))
        yield _sample(grad, output_like(output, dim), dim)


def every_layout(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Each layout of each shape, of gradient, output and both, reduced along each dimension."""
    for shape in SHAPES:
        yield from _layouts(_make(device, dtype), shape, range(len(shape)))


def one_shape(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """The same and every expansion of one shape, along an outer and the last dimension."""
    shape = (2, 19, 3, 5)
    yield from _layouts(_make(device, dtype), shape, (1, 3))
    yield from _expanded(_make(device, dtype), shape, (1, 3))


def expanded_gradients(
    op: OpInfo, device: str, dtype: torch.dtype, *_: Any
) -> Iterator[SampleInput]:
    """Gradients with stride 0, as those of sums and means are."""
    for shape in SHAPES:
        yield from _expanded(_make(device, dtype), shape, range(len(shape)))


def _layouts(make: Make, shape: Shape, dims: Any) -> Iterator[SampleInput]:
    for dim in dims:
        grads, outputs = layouts(make, shape), layouts(make, shape)
        for (name, grad), (_, output) in zip(grads, outputs, strict=True):
            output_like(output, dim)
            yield _sample(grad, output_like(make(shape), dim), dim, f"grad {name}")
            yield _sample(make(shape), output, dim, f"output {name}")
            yield _sample(grad, output, dim, f"grad and output {name}")


def _expanded(make: Make, shape: Shape, dims: Any) -> Iterator[SampleInput]:
    for name, grad in expanded(make, shape):
        for dim in dims:
            yield _sample(grad, output_like(make(shape), dim), dim, f"grad {name}")


def for_outs(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Rows that are loaded in vectors, alone and side by side, and rows longer than registers."""
    for shape, dims in OUT_SHAPES.items():
        for dim in dims:
            yield _contiguous(_make(device, dtype), shape, dim)


def empty(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """No rows, rows of no elements, neither, and a scalar beside them."""
    make = _make(device, dtype)
    for shape, dim in (((0,), 0), ((0, 5), 1), ((5, 0), 1), ((5, 0), 0), ((2, 0, 3), 2)):
        yield _sample(make(shape), make(shape), dim)
    for dim in (0, -1):
        yield _sample(make(()), output_like(make(()), dim), dim)


def special_values(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """What losses make: one-hot and masked rows; infinities, NaN and sums that cancel."""
    make = _make(device, dtype)
    for length in (5, 46, 1025, 4097, 30522):
        for name, change in _CHANGES.items():
            grad, output = make((3, length)), output_like(make((3, length)), 1)
            change(grad, output)
            yield _sample(grad, output, 1, name)
            yield _sample(grad.t().clone(), output.t().clone(), 0, f"{name}, rows side by side")


def _one_hot(grad: Tensor, output: Tensor) -> None:
    grad.zero_()
    grad[:, grad.shape[1] // 3] = -1


def _ignored(grad: Tensor, output: Tensor) -> None:
    grad[1] = 0


def _cancelling(grad: Tensor, output: Tensor) -> None:
    half = grad.shape[1] // 2
    grad[:, :half] = -grad[:, grad.shape[1] - half :]


def _masked(grad: Tensor, output: Tensor) -> None:
    output[:, : output.shape[1] // 2] = -torch.inf


def _contaminated(value: float, position: int) -> Callable[[Tensor, Tensor], None]:
    def change(grad: Tensor, output: Tensor) -> None:
        grad[1, position] = value

    return change


def _contaminated_output(grad: Tensor, output: Tensor) -> None:
    output[1] = torch.nan


def _certain(grad: Tensor, output: Tensor) -> None:
    output.fill_(-torch.inf)
    output[:, -1] = 0


_CHANGES: dict[str, Callable[[Tensor, Tensor], None]] = {
    "one-hot": _one_hot,
    "ignored row": _ignored,
    "cancelling": _cancelling,
    "masked": _masked,
    "certain": _certain,
    "nan first": _contaminated(torch.nan, 0),
    "nan last": _contaminated(torch.nan, -1),
    "inf first": _contaminated(torch.inf, 0),
    "-inf last": _contaminated(-torch.inf, -1),
    "nan output": _contaminated_output,
}


def large_index(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Where memory can be mapped sparsely: gradient or output farther apart than 32 bits count."""
    make = _make(device, dtype)
    if torch.device(device).type != "cpu":
        return
    for name, size, strides in far.FAR_APART:
        for dim in range(len(size)):
            sparse = far.far_apart(size, strides, dtype).copy_(make(size))
            yield _sample(sparse, output_like(make(size), dim), dim, f"grad {name}")
            sparse = output_like(far.far_apart(size, strides, dtype).copy_(make(size)), dim)
            yield _sample(make(size), sparse, dim, f"output {name}")


def forced(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """A few problems of each kind, for a branch that the plan would not choose for all of them."""
    make = _make(device, dtype)
    for length in (1, 2, 33, 46, 129, 1025, 4097, 16384, 30522):
        for count in (1, 3):
            yield _contiguous(make, (count, length), 1)
    for count in (127, 257):
        yield _contiguous(make, (count, 46), 1)
    yield from one_shape(op, device, dtype)

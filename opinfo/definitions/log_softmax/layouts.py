"""Sample inputs by dimension and memory layout."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch.testing import make_tensor
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from opinfo.layouts import Shape, expanded, layouts

# One dimension to five, no two sizes of a shape alike.
SHAPES: tuple[Shape, ...] = (
    *((37,), (5, 9), (3, 150), (3, 40, 5)),
    *((2, 19, 3, 5), (2, 3, 4, 33, 5)),
)

# Of rows that are whole vectors of every dtype, and of rows that are not.
OUT_SHAPES: dict[Shape, tuple[int, ...]] = {
    (2, 72, 3, 8): (1,),
    (3, 5, 72): (1, 2),
    (2, 16387): (1,),
    (4099, 3): (0,),
}


def every_dim(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Each dimension of each shape, counted from both ends; then as many as the op allows."""
    make = partial(make_tensor, dtype=dtype, device=device)
    for shape in SHAPES:
        for dim in range(-len(shape), len(shape)):
            yield SampleInput(make(shape), args=(dim,))
    # No two neighbours in memory can be merged into one dimension.
    interleaved = (*range(0, 16, 2), *range(1, 16, 2))
    for dim in (0, 7, 15):
        yield SampleInput(make((2,) * 16).permute(interleaved), args=(dim,))


def every_layout(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Each layout of each shape, reduced along each dimension."""
    make = partial(make_tensor, dtype=dtype, device=device)
    for shape in SHAPES:
        for name, tensor in layouts(make, shape):
            for dim in range(len(shape)):
                yield SampleInput(tensor, args=(dim,), kwargs={}, name=name)


def every_expansion(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Stride 0 along each dimension, reduced along each dimension."""
    make = partial(make_tensor, dtype=dtype, device=device)
    for shape in SHAPES:
        for name, tensor in expanded(make, shape):
            for dim in range(len(shape)):
                yield SampleInput(tensor, args=(dim,), kwargs={}, name=name)


def empty(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """No rows, rows of no elements, neither, and a scalar beside them."""
    make = partial(make_tensor, dtype=dtype, device=device)
    for shape, dim in (((0,), 0), ((0, 5), 1), ((5, 0), 1), ((5, 0), 0), ((2, 0, 3), 2)):
        yield SampleInput(make(shape), args=(dim,))
    yield SampleInput(make(()), args=(0,))
    yield SampleInput(make(()), args=(-1,))


def one_shape(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Every layout and expansion of one shape, along an outer and the last dimension."""
    make = partial(make_tensor, dtype=dtype, device=device)
    shape = (2, 19, 3, 5)
    for tensors in (layouts(make, shape), expanded(make, shape)):
        for name, tensor in tensors:
            for dim in (1, 3):
                yield SampleInput(tensor, args=(dim,), kwargs={}, name=name)


def for_outs(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Rows that are loaded in vectors, alone and side by side, and rows longer than registers."""
    make = partial(make_tensor, dtype=dtype, device=device)
    for shape, dims in OUT_SHAPES.items():
        for dim in dims:
            yield SampleInput(make(shape), args=(dim,))
    image = make((2, 72, 3, 8)).to(memory_format=torch.channels_last)
    yield SampleInput(image, args=(1,), kwargs={}, name="channels last")

"""Tensors of one shape, laid out in memory in every way an op may meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import torch
from torch import Tensor

Shape = tuple[int, ...]
# Makes the contiguous tensor of a shape that a layout is a view of.
Make = Callable[[Shape], Tensor]
Layout = Callable[[Make, Shape], Tensor]


def contiguous(make: Make, shape: Shape) -> Tensor:
    return make(shape)


def transposed(make: Make, shape: Shape) -> Tensor:
    """All dimensions in reverse order."""
    return make(shape[::-1]).permute(*reversed(range(len(shape))))


def last_two_swapped(make: Make, shape: Shape) -> Tensor:
    return make((*shape[:-2], shape[-1], shape[-2])).transpose(-2, -1)


def rotated(make: Make, shape: Shape) -> Tensor:
    """The first dimension innermost: neither the given order nor its reverse."""
    return make((*shape[1:], shape[0])).movedim(-1, 0)


def sliced(make: Make, shape: Shape) -> Tensor:
    """A wider row pitch, and an offset into the storage."""
    return make((*shape[:-1], shape[-1] + 3))[..., 2:-1]


def stepped(make: Make, shape: Shape) -> Tensor:
    return make((*shape[:-1], 2 * shape[-1]))[..., ::2]


def stepped_outer(make: Make, shape: Shape) -> Tensor:
    return make((3 * shape[0], *shape[1:]))[1::3]


def with_offset(make: Make, shape: Shape) -> Tensor:
    """A storage offset that breaks every alignment wider than the element's."""
    return make((prod(shape) + 5,))[5:].view(shape)


def channels_last(make: Make, shape: Shape) -> Tensor:
    """Channels innermost, in four or five dimensions."""
    batch, channels, *spatial = shape
    return make((batch, *spatial, channels)).movedim(-1, 1)


LAYOUTS: tuple[Layout, ...] = (
    contiguous,
    transposed,
    last_two_swapped,
    rotated,
    sliced,
    stepped,
    stepped_outer,
    with_offset,
    channels_last,
)
_LEAST_DIMS: dict[Layout, int] = {transposed: 2, last_two_swapped: 2, rotated: 3, channels_last: 4}


def fits(layout: Layout, shape: Shape) -> bool:
    """Whether a layout makes sense for a shape of that many dimensions."""
    return len(shape) >= _LEAST_DIMS.get(layout, 1)


def layouts(make: Make, shape: Shape) -> Iterator[tuple[str, Tensor]]:
    """Name and tensor of each layout that ``shape``, of one dimension or more, can have.

    No two elements of a tensor share memory.
    """
    for layout in LAYOUTS:
        if fits(layout, shape):
            yield layout.__name__, layout(make, shape)


def expanded(make: Make, shape: Shape) -> Iterator[tuple[str, Tensor]]:
    """Tensors with stride 0 along each dimension, and along all."""
    for dim in range(len(shape)):
        narrow = (*shape[:dim], 1, *shape[dim + 1 :])
        yield f"expanded along {dim}", make(narrow).expand(shape)
    yield "expanded along all", make((1,) * len(shape)).expand(shape)


def layout_of(tensor: Tensor) -> str:
    """What a tensor's layout is called in reports."""
    name = _layout_of_elements(tensor)
    return f"{name}, offset" if tensor.storage_offset() else name


def _layout_of_elements(tensor: Tensor) -> str:
    if not tensor.numel():
        return "empty"
    if not tensor.dim():
        return "scalar"
    sizes_and_strides = zip(tensor.shape, tensor.stride(), strict=True)
    if any(size > 1 and not stride for size, stride in sizes_and_strides):
        return "expanded"
    if tensor.is_contiguous():
        return "contiguous"
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return "channels last"
    innermost_last = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    return "permuted" if tensor.permute(innermost_last).is_contiguous() else "strided"


class Guarded:
    """An ``out`` tensor inside a buffer that remembers what lies beside it."""

    _SENTINEL = 42.0

    def __init__(
        self, layout: Layout, shape: Shape, *, dtype: torch.dtype, device: torch.device
    ) -> None:
        def make(shape: Shape) -> Tensor:
            self._buffer = torch.full(shape, self._SENTINEL, dtype=dtype, device=device)
            return self._buffer

        self.tensor = layout(make, shape)

    def damaged(self) -> int:
        """How many elements beside the tensor were written; the tensor is spent afterwards."""
        self.tensor.fill_(self._SENTINEL)
        return int((self._buffer != self._SENTINEL).sum())

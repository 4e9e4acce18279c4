"""Sample inputs whose elements lie farther apart than 32 bits can count."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.testing import make_tensor
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

# Size and strides, in elements: the last row beyond 2^32 elements, the last column beyond them,
# neighbours beyond them in steps of more than 2^32, and beyond 2^32 bytes but not elements.
FAR_APART: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = (
    ("rows far apart", (3, 100), (2**31 + 3, 1)),
    ("elements far apart", (5, 9), (1, 2**29 + 1)),
    ("more than 2^32 apart", (2, 2, 40), (2**32 + 64, 50, 1)),
    ("beyond 2^32 bytes", (3, 100), (2**30 + 7, 1)),
)


def sparse_tensor(numel: int, dtype: torch.dtype) -> Tensor:
    """A CPU tensor mapped onto a file of holes: only what is written takes memory."""
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(numel * dtype.itemsize)
        return torch.from_file(file.name, shared=True, size=numel, dtype=dtype)


def far_apart(
    size: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, offset: int = 0
) -> Tensor:
    """A view into sparse memory that reaches as far as its strides say."""
    last = sum((n - 1) * stride for n, stride in zip(size, strides, strict=True))
    return sparse_tensor(offset + last + 1, dtype).as_strided(size, strides, offset)


def samples(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Where memory can be mapped sparsely, on the CPU; real memory holds the same views elsewhere.

    A GPU gets the largest that costs 2 GB, whose rows begin beyond 2^31 bytes.
    """
    if torch.device(device).type != "cpu":
        values = make_tensor((2, 100), dtype=dtype, device=device)
        pitch = 2**31 // dtype.itemsize
        memory = torch.empty(pitch + 100, dtype=dtype, device=device)
        yield SampleInput(memory.as_strided((2, 100), (pitch, 1)).copy_(values), args=(-1,))
        return
    for name, size, strides in FAR_APART:
        tensor = far_apart(size, strides, dtype)
        tensor.copy_(make_tensor(size, dtype=dtype, device=device))
        for dim in range(len(size)):
            yield SampleInput(tensor, args=(dim,), kwargs={}, name=name)
    tensor = far_apart((4, 50), (50, 1), dtype, offset=2**32 + 1)
    tensor.copy_(make_tensor((4, 50), dtype=dtype, device=device))
    yield SampleInput(tensor, args=(-1,), kwargs={}, name="storage offset beyond 2^32")

"""Sample inputs by row length and number of rows, around every threshold of the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch.testing import make_tensor
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from opinfo.definitions.log_softmax.forcings import planner
from opinfo.definitions.log_softmax.layouts import one_shape

SHORT = (1, 2, 7, 8, 9, 31, 32, 33, 46, 127, 128, 129, 256, 257)
MEDIUM = (1000, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 4097)
LONG = (16384, 16385, 30522, 51866, 151936)
ROWS = (1, 2, 127, 128, 255, 256, 257)
COLUMNS = (1, 31, 32, 33, 257)
# Rows and length of what keeps a GPU busy with a thread's registers full, or half full: from a
# thousand rows on a plan need not spread them.
MANY_ROWS = ((600, 33), (600, 46), (1200, 129), (2048, 257), (4096, 33), (4096, 65), (4096, 129))
# Row counts among which the plan's choices are compared.
_ROW_RANGE = range(1, 258)
# Half and bfloat differ from float in loads and stores alone: they get the problems up to this
# size, float gets all.
_MOST_ELEMENTS_OF_SMALL_FLOATS = 2**19

Problem = tuple[int, int]


def short_rows(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Every length with every number of rows."""
    yield from _samples(device, dtype, ((rows, length) for length in SHORT for rows in ROWS))


def medium_rows(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Every length with every number of rows."""
    yield from _samples(device, dtype, ((rows, length) for length in MEDIUM for rows in ROWS))


def many_rows(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Short rows, more than cores are idle for; packed, and in a wider pitch."""
    for rows, length in MANY_ROWS:
        yield SampleInput(make_tensor((rows, length), dtype=dtype, device=device), args=(-1,))
        wide = make_tensor((rows, length + 3), dtype=dtype, device=device)
        yield SampleInput(wide[:, 2:-1], args=(-1,))


def long_rows(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Few rows each, which is what long rows come in."""
    yield from _samples(device, dtype, ((rows, length) for length in LONG for rows in (1, 2)))


def plan_thresholds(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """For every length, the row counts on both sides of each change of the plan's kernel."""
    for length in (*SHORT, *MEDIUM, *LONG):
        yield from _samples(device, dtype, _neighbours(length, dtype))


def columns(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """Reduced dimension in the middle; the rows lie side by side."""
    make = partial(make_tensor, dtype=dtype, device=device)
    for length in SHORT:
        for count in COLUMNS:
            yield SampleInput(make((2, length, count)), args=(1,))
    for length in MEDIUM:
        for count in (1, 33):
            yield SampleInput(make((2, length, count)), args=(1,))
    for length in LONG:
        yield SampleInput(make((length, 2)), args=(0,))


def forced(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    """A few problems of each kind, for a branch that the plan would not choose for all of them."""
    lengths = (1, 2, 33, 46, 129, 1025, 4097, 16384, 30522)
    yield from _samples(device, dtype, ((rows, length) for length in lengths for rows in (1, 3)))
    yield from _samples(device, dtype, ((rows, 46) for rows in (127, 257)))
    yield from one_shape(op, device, dtype)


def _samples(device: str, dtype: torch.dtype, problems: Iterable[Problem]) -> Iterator[SampleInput]:
    for rows, length in problems:
        small = rows * length <= _MOST_ELEMENTS_OF_SMALL_FLOATS
        if small or dtype == torch.float32 or rows <= 2:
            yield SampleInput(make_tensor((rows, length), dtype=dtype, device=device), args=(-1,))


def _neighbours(length: int, dtype: torch.dtype) -> Iterator[Problem]:
    plan = planner().plan
    kernels = [
        plan((rows, length), (length, 1), (length, 1), 1, dtype).kernel for rows in _ROW_RANGE
    ]
    for (rows, kernel), (next_rows, next_kernel) in pairwise(zip(_ROW_RANGE, kernels, strict=True)):
        if kernel != next_kernel:
            yield from ((rows, length), (next_rows, length))

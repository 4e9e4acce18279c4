"""Inputs from public bug reports about softmax on accelerators, and their neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.testing import make_tensor
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

inf, nan = torch.inf, torch.nan

# fmt: off
WIDE_RANGE = (
    (-16.9397, 74.5907, -245.5731, 57.9282, -59.7757, 26.2957, -27.3786, 71.2639, 57.6391, 54.0626),
    (-13.8363, 62.5153, -206.0240, 48.6378, -51.2763, 21.7313, -22.6663, 59.4996, 47.2677, 47.7668),
)
# fmt: on
CONTAMINATED = ((nan, inf, -inf), (-0.0663, 0.1321, -0.0410))
# Long enough for a leading mask to cover whole chunks of a split row.
_SPLIT_LENGTH = 30522
_MASKED = 4096
# A length with a sum that half cannot hold.
_LARGE_CONSTANT_LENGTH = 12416


def samples(op: OpInfo, device: str, dtype: torch.dtype, *_: Any) -> Iterator[SampleInput]:
    def tensor(*values: Any) -> Tensor:
        return torch.tensor(values, dtype=dtype, device=device)

    def random(*shape: int) -> Tensor:
        return make_tensor(shape, dtype=dtype, device=device)

    def named(name: str, input: Tensor, dim: int = -1) -> SampleInput:
        return SampleInput(input, args=(dim,), kwargs={}, name=name)

    yield named("wide range", tensor(*WIDE_RANGE))
    yield named("wide range, far from 0", tensor(*WIDE_RANGE) + 1e4)
    yield named("contaminated row", tensor(*CONTAMINATED))
    for length in (5, 46, 1025, 4097, _SPLIT_LENGTH):
        for bad in (nan, inf):
            for position in (0, length // 2, length - 1):
                rows = random(3, length)
                rows[1, position] = bad
                yield named(f"{bad} at {position} of the middle row", rows)
                yield named(f"{bad} at {position} of the middle column", rows.t().clone(), 0)
        yield named("-inf, but for one value", _all_but_one_masked(random(2, length)))
        yield named("all masked", _all_masked(random(2, length)))
        yield named("largest values", torch.full_like(random(2, length), torch.finfo(dtype).max))
        yield named("lowest values", torch.full_like(random(2, length), torch.finfo(dtype).min))
    yield named("one element a row", random(4, 1))
    yield named("one -inf a row", torch.full_like(random(4, 1), -inf))
    for count in (1, 3, 70):
        yield named("leading mask", _leading_mask(random(count, _SPLIT_LENGTH)))
    yield named("leading mask, rows side by side", _leading_mask(random(3, _SPLIT_LENGTH)).t(), 0)
    yield named("sliced view", random(1, 8, 5)[..., :4], 1)
    yield named("sliced view with an offset", random(2, 8, 5)[1:, 2:, 1:], 1)
    yield named("transposed", random(2, 6, 40).transpose(-2, -1))
    image = random(2, 21, 6, 5).to(memory_format=torch.channels_last)
    yield named("channels last", image, 1)
    for length in (_LARGE_CONSTANT_LENGTH, 2 * _LARGE_CONSTANT_LENGTH):
        for value in (0, 7.5, -1e4):
            constant = torch.full_like(random(2, length), value)
            yield named(f"constant {value}", constant)
            yield named(f"constant {value}, rows side by side", constant.t().clone(), 0)


def _all_but_one_masked(rows: Tensor) -> Tensor:
    kept = rows.shape[1] // 3
    value = rows[:, kept].clone()
    rows.fill_(-inf)
    rows[:, kept] = value
    return rows


def _all_masked(rows: Tensor) -> Tensor:
    rows[0] = -inf
    return rows


def _leading_mask(rows: Tensor) -> Tensor:
    rows[:, :_MASKED] = -inf
    return rows

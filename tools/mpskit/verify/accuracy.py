"""Errors of a result, in units in the last place of its dtype."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Significant bits of a floating dtype, the implicit one included.
PRECISION = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}


def ulp(value: Tensor, dtype: torch.dtype) -> Tensor:
    """The spacing of ``dtype`` at ``value`` (float64), or at 1 where that is larger.

    A result next to 0 is the difference of numbers near 1, and is no finer than they are.
    """
    _, exponent = torch.frexp(value.abs().clamp_min_(1))
    return torch.exp2((exponent - PRECISION[dtype]).double())


@dataclass(frozen=True)
class Errors:
    """Largest and mean error of a result's finite elements, in ULP."""

    max_ulp: float
    mean_ulp: float


def errors_against(reference: Tensor, result: Tensor) -> Errors:
    """Compares a result with its float64 reference, on whatever device both are."""
    off = (result.double() - reference).abs_() / ulp(reference, result.dtype)
    off = off[reference.isfinite()]
    return Errors(off.max().item(), off.mean().item())

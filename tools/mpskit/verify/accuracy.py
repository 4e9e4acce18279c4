"""Errors against a float64 reference, in units in the last place."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Significant bits of a floating dtype, the implicit one included.
PRECISION = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}


def unit_roundoff(dtype: torch.dtype) -> float:
    """The largest relative error of rounding to the nearest: half an ULP of 1."""
    return 2.0 ** -PRECISION[dtype]


def rounding_error(value: Tensor, dtype: torch.dtype) -> Tensor:
    """How far rounding ``value`` (float64) to ``dtype`` may move it, subnormals included."""
    half_spacing_of_subnormals = torch.finfo(dtype).smallest_normal * unit_roundoff(dtype)
    return (value.abs() * unit_roundoff(dtype)).clamp_min_(half_spacing_of_subnormals)


def few_roundings(value: Tensor, dtype: torch.dtype) -> Tensor:
    """What float32 arithmetic of 4 ULP at most, and one rounding to ``dtype``, may be off."""
    allowed = 8 * rounding_error(value, torch.float32)
    return allowed if dtype == torch.float32 else allowed + rounding_error(value, dtype)


def ulp(value: Tensor, dtype: torch.dtype) -> Tensor:
    """The spacing of ``dtype`` at ``value`` (float64), or at 1 where that is larger.

    A result next to 0 is the difference of numbers near 1, and is no finer than they are.
    """
    _, exponent = torch.frexp(value.abs().clamp_min_(1))
    return torch.exp2((exponent - PRECISION[dtype]).double())


@dataclass(frozen=True)
class Comparison:
    """A result beside its reference.

    Attributes:
        worst_ulp: the largest error, in ULP of the result's dtype (see :func:`ulp`).
        index: of the element that exceeds its tolerance by most; None if none does.
        failing: how many elements exceed theirs.
        expected, actual, allowed, error_ulp: of the element at ``index``.
    """

    worst_ulp: float
    index: tuple[int, ...] | None = None
    failing: int = 0
    expected: float = 0.0
    actual: float = 0.0
    allowed: float = 0.0
    error_ulp: float = 0.0

    def __str__(self) -> str:
        if self.index is None:
            return f"all within tolerance, worst {self.worst_ulp:.2f} ULP"
        return (
            f"{self.failing} wrong, the worst at {list(self.index)}: expected "
            f"{self.expected!r}, got {self.actual!r}, {self.error_ulp:.4g} ULP off; "
            f"{self.allowed:.3g} is allowed"
        )


def compare(actual: Tensor, expected: Tensor, allowed: Tensor) -> Comparison:
    """Compares elementwise; where the rounded reference is not finite, it must be met exactly.

    Args:
        actual: the result, in the dtype under test.
        expected: float64 reference of the same shape, on the CPU.
        allowed: absolute tolerance of each element, float64.
    """
    if actual.numel() == 0:
        return Comparison(0.0)
    got = actual.detach().cpu().double()
    rounded = expected.to(actual.dtype).double()
    same = (got == rounded) | (got.isnan() & rounded.isnan())
    error = (got - expected).abs_().nan_to_num_(nan=torch.inf, posinf=torch.inf)
    error[same & ~rounded.isfinite()] = 0
    allowed = torch.where(rounded.isfinite(), allowed, 0)
    in_ulp = error / ulp(rounded.nan_to_num(0, 0, 0), actual.dtype)
    worst_ulp = in_ulp.max().item()
    failing = error > allowed
    if not failing.any():
        return Comparison(worst_ulp)
    excess = torch.where(failing, error / allowed.clamp_min(torch.finfo(torch.float64).tiny), -1)
    index = tuple(int(i) for i in torch.unravel_index(excess.argmax(), excess.shape))
    return Comparison(
        worst_ulp,
        index,
        int(failing.sum()),
        expected[index].item(),
        got[index].item(),
        allowed[index].item(),
        in_ulp[index].item(),
    )


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

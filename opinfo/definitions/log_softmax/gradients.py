"""The right gradients in float64, and how far from them those of the kernels may be."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import SampleInput

from mpskit.verify.accuracy import rounding_error, unit_roundoff
from opinfo.definition import Differences
from opinfo.definitions.log_softmax.reference import reference, row_dim, tolerance

# The Metal specification's bound for exp without fast math, in ULP.
_METAL_ULP = 4
# The most additions in a row that a thread makes for a sum over `n` elements is n over this, and
# the most that it takes to add up the threads of a row.
_LEAST_PARALLELISM = 32
_TREE_ADDITIONS = 10


def backward(grad: Tensor, output: Tensor, dim: int) -> Tensor:
    """grad - exp(output) sum(grad), in float64 on the CPU."""
    grad, output = grad.detach().cpu().double(), output.detach().cpu().double()
    return grad - output.exp() * grad.sum(dim, keepdim=True)


def backward_tolerance(
    grad: Tensor,
    output: Tensor,
    dim: int,
    dtype: torch.dtype,
    output_error: Tensor | float = 0,
) -> Tensor:
    """What grad - p s may be off by, for p = exp(output), s = sum(grad) and u = 2^-24.

    Float32 arithmetic errs by

    - u |result| in the subtraction, and u p |s| in the product;
    - 2 u c p |s| in p, where exp is off by c ULP, and p |s| (exp(e) - 1) where the kernels read
      an ``output`` that is off from this one by up to e = ``output_error``;
    - u sqrt(k) p sum(|grad|) in the sum, where k additions follow each other: rounding errors are
      as good as independent, as in log_softmax's own tolerance.

    An exponential below float32's normal range may be 0. A result in half or bfloat is rounded
    once more.
    """
    expected = backward(grad, output, dim)
    grad, output = grad.detach().cpu().double(), output.detach().cpu().double()
    length = grad.shape[dim] if grad.dim() else 1
    additions = (length / _LEAST_PARALLELISM + _TREE_ADDITIONS) ** 0.5
    u = unit_roundoff(torch.float32)
    p, s = output.exp(), grad.sum(dim, keepdim=True).abs()
    terms = (2 * _METAL_ULP + 1) * s + additions * grad.abs().sum(dim, keepdim=True)
    allowed: Tensor = u * (expected.abs() + p * terms)
    allowed += torch.finfo(torch.float32).smallest_normal * (1 + s)
    growth = torch.as_tensor(output_error, dtype=torch.float64).expm1()
    allowed += s * torch.where(p > 0, p * growth, 0)
    return allowed if dtype == torch.float32 else allowed + rounding_error(expected, dtype)


def gradient(sample: SampleInput, cotangent: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of a sample's input in float64, and what a kernel's may be off by.

    The kernels' backward reads the output of their forward, which is off by its own tolerance.
    """
    dim, dtype = row_dim(sample), cotangent.dtype
    output = reference(sample)
    off = tolerance(sample, output, dtype)
    expected = backward(cotangent, output, dim)
    allowed = backward_tolerance(cotangent, output, dim, dtype, off)
    if sample.input.dtype != dtype:  # dtype= was given: the gradient is converted back
        allowed += rounding_error(expected, sample.input.dtype)
    return expected, allowed


def _on_a_grid(shape: tuple[int, ...], device: str | torch.device, *, bound: float) -> Tensor:
    """Random multiples of 2^-10, up to ``bound``: exact in float32, and so is a step from them."""
    units = int(bound * 2**10)
    return torch.randint(-units, units + 1, shape, device=device).float() / 2**10


def _small(device: str) -> list[SampleInput]:
    shapes: tuple[tuple[tuple[int, ...], int], ...] = (
        *(((3, 7), 1), ((3, 7), 0)),
        *(((5,), 0), ((2, 3, 4), 1), ((1, 40), 1)),
    )
    return [SampleInput(_on_a_grid(shape, device, bound=4), args=(dim,)) for shape, dim in shapes]


def _large(device: str) -> list[SampleInput]:
    shapes: tuple[tuple[tuple[int, ...], int], ...] = (
        *(((64, 1000), 1), ((4, 150, 8, 8), 1)),
        *(((1, 30522), 1), ((70, 2500), 1)),
    )
    return [SampleInput(_on_a_grid(shape, device, bound=4), args=(dim,)) for shape, dim in shapes]


DIFFERENCES = Differences(
    step=2**-5,
    tolerance=2e-4,
    cotangent=lambda result: _on_a_grid(result.shape, result.device, bound=0.25),
    small=_small,
    large=_large,
)
"""Central differences of the float32 kernels.

(f(x + h) - f(x - h)) / 2h errs by h^2 M / 6, where M bounds the third derivative, and by d / h,
where f is off by up to d. The sum is least at h = (3 d / M)^(1/3).

*log_softmax.* Along one element, the third derivative of log sum exp is p (1 - p) (1 - 2p), at
most M = 1 / (6 sqrt 3) = 0.096. For |x| <= 4 and rows of up to 40 elements, |y| <= 8 + log 40 <
12, and the tolerance of ``reference.py`` is d = 2^-24 (24 + 9 log 40 + 8 + 1.1) = 3.9e-6. The
best step would be 0.05; h = 2^-5 is exact on the grid that the inputs are drawn from, where
x + h and x - h are exact as well. Then h^2 M / 6 + d / h = 1.6e-5 + 1.3e-4 = 1.4e-4.

*Its backward,* g - p s with s = sum(g). Along one element of x, the third derivative of p is
p (1 - p) (1 - 6p + 6p^2), at most 1/8; in g, it is linear. With |g| <= 1/4 on rows of 7, |s| <
1.75, the tolerance above is p |s| d + 2^-24 (|g| + p (9 |s| + 3.3 sum|g|)), where p |s| d
decides, at most 1.75 d p; rows where p is near 1 have |y| near 0 and so d = 1.6e-6. Hence
h^2 1.75 / 48 + 2.8e-6 / h + 2^-24 22 / h = 3.6e-5 + 9e-5 + 4.2e-5 = 1.7e-4.

So 2e-4 holds for both. In fast mode the differences are taken along random directions of length 1,
whose third derivatives are no larger; torch widens the tolerance for the projection.
"""

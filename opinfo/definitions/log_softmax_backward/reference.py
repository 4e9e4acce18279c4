"""The right gradients in float64, and how far from them a kernel may be."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import SampleInput

from mpskit.verify.accuracy import rounding_error, unit_roundoff

# The Metal specification's bound for exp without fast math, in ULP.
_METAL_ULP = 4
# The most additions in a row that a thread makes for a sum over `n` elements is n over this, and
# the most that it takes to add up the threads of a row.
_LEAST_PARALLELISM = 32
_TREE_ADDITIONS = 10


def gradient(grad: Tensor, output: Tensor, dim: int) -> Tensor:
    """grad - exp(output) sum(grad), in float64 on the CPU."""
    grad, output = grad.detach().cpu().double(), output.detach().cpu().double()
    return grad - output.exp() * grad.sum(dim, keepdim=True)


def reference(sample: SampleInput) -> Tensor:
    output, dim, _ = sample.args
    return gradient(sample.input, output, dim)


def tolerance(sample: SampleInput, expected: Tensor, dtype: torch.dtype) -> Tensor:
    """What each element of a gradient may be off by; float64, of the shape of ``expected``."""
    output, dim, _ = sample.args
    return gradient_tolerance(sample.input, output, dim, expected, dtype, 0)


def gradient_tolerance(
    grad: Tensor,
    output: Tensor,
    dim: int,
    expected: Tensor,
    dtype: torch.dtype,
    output_error: Tensor | float,
) -> Tensor:
    """What grad - p s may be off by, for p = exp(output), s = sum(grad) and u = 2^-24.

    Float32 arithmetic errs by

    - u |result| in the subtraction, and u p |s| in the product;
    - 2 u c p |s| in p, where exp is off by c ULP, and p |s| (exp(e) - 1) where ``output`` itself
      is off by up to e = ``output_error``;
    - u sqrt(k) p sum(|grad|) in the sum, where k additions follow each other: rounding errors are
      as good as independent, as in log_softmax's own tolerance.

    An exponential below float32's normal range may be 0. A result in half or bfloat is rounded
    once more.

    Args:
        grad, output: as the kernels read them; of the reference where those read their own.
        expected: the gradient, float64.
    """
    grad, output = grad.detach().cpu().double(), output.detach().cpu().double()
    length = grad.shape[dim] if grad.dim() else 1
    additions = (length / _LEAST_PARALLELISM + _TREE_ADDITIONS) ** 0.5
    u = unit_roundoff(torch.float32)
    p, s = output.exp(), grad.sum(dim, keepdim=True).abs()
    of_output = torch.as_tensor(output_error, dtype=torch.float64).expm1()
    terms = (2 * _METAL_ULP + 1) * s + additions * grad.abs().sum(dim, keepdim=True)
    allowed: Tensor = u * (expected.abs() + p * terms) + p * s * of_output
    allowed += torch.finfo(torch.float32).smallest_normal * (1 + s)
    return allowed if dtype == torch.float32 else allowed + rounding_error(expected, dtype)

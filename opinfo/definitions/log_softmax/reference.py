"""The right results in float64, and how far from them a kernel may be."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import SampleInput

from mpskit.verify.accuracy import rounding_error, unit_roundoff

# The Metal specification's bound for exp and log without fast math, in ULP.
_METAL_ULP = 4
# The most additions in a row that a thread makes for a sum over `n` elements is n over this.
_LEAST_PARALLELISM = 32


def row_dim(sample: SampleInput) -> int:
    """The reduced dimension; not negative."""
    dim = sample.args[0] if sample.args else sample.kwargs["dim"]
    return int(dim % max(1, sample.input.dim()))


def row_length(sample: SampleInput) -> int:
    return int(sample.input.shape[row_dim(sample)]) if sample.input.dim() else 1


def reference(sample: SampleInput) -> Tensor:
    """log_softmax of the sample's input, as its dtype rounds it, in float64 on the CPU."""
    input: Tensor = sample.input.detach().cpu()
    if dtype := sample.kwargs.get("dtype"):
        input = input.to(dtype)
    if input.numel() == 0:
        return input.double()
    dim = row_dim(sample)
    shifted = input.double()
    shifted = shifted - shifted.amax(dim, keepdim=True)
    return shifted - shifted.exp().sum(dim, keepdim=True).log()


def tolerance(sample: SampleInput, expected: Tensor, dtype: torch.dtype) -> Tensor:
    """What each element of a result may be off by; float64, of the shape of ``expected``.

    With y = (x - m) - log S, S = sum exp(x - m) and u = 2^-24, float32 arithmetic errs by

    - u |x - m| and u |y| in the two subtractions, and |x - m| <= |y| as S >= 1;
    - 2 u c |log S| in the logarithm, log S <= log n, where it is off by c ULP;
    - in log S, the relative error of S. A term of S errs by u |x - m| from its argument and by
      2 u c from exp. Weighted with the probabilities p the first is u E|x - m|, and
      E|x - m| = H(p) - log S <= log n. The additions add u sqrt(k), where k of them follow each
      other: rounding errors are as good as independent (Higham and Mary 2019, "A new approach to
      probabilistic rounding error analysis").

    So |error| <= u (2 |y| + (2 c + 1) log n + 2 c + sqrt k), with c = 4 from the Metal
    specification. It does not grow with |x|. A result in half or bfloat is rounded once more.
    """
    n = row_length(sample)
    u = unit_roundoff(torch.float32)
    additions = math.sqrt(n / _LEAST_PARALLELISM)
    constant = (2 * _METAL_ULP + 1) * math.log(max(1, n)) + 2 * _METAL_ULP + additions
    allowed = u * (2 * expected.abs() + constant)
    return allowed if dtype == torch.float32 else allowed + rounding_error(expected, dtype)

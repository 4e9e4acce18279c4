"""The right gradients in float64, and how far from them a kernel may be."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import SampleInput

from opinfo.definitions.log_softmax.gradients import backward, backward_tolerance


def reference(sample: SampleInput) -> Tensor:
    output, dim, _ = sample.args
    return backward(sample.input, output, dim)


def tolerance(sample: SampleInput, expected: Tensor, dtype: torch.dtype) -> Tensor:
    """What each element of a gradient may be off by; float64, of the shape of ``expected``."""
    output, dim, _ = sample.args
    return backward_tolerance(sample.input, output, dim, dtype)

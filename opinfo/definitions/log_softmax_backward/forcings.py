"""Each kernel and index width that the backward's plan can be made to take."""

from __future__ import annotations

from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput

from mpskit.errors import MpskitError
from mpskit.verify.plan import METAL_DTYPES, BackwardKernel, BackwardPlanner, Index
from mpskit.verify.sources import PatchSources
from opinfo.definition import Forcing
from opinfo.settings import settings

_KERNELS = {
    BackwardKernel.ROW: ("log_softmax_backward_row",),
    BackwardKernel.SPLIT: ("log_softmax_backward_partial", "log_softmax_backward_finalize"),
    BackwardKernel.STRIDED: ("log_softmax_backward",),
    BackwardKernel.LONG_ROW: ("log_softmax_backward_long_row",),
}


def planner() -> BackwardPlanner:
    """The plan of the patch set under test."""
    return BackwardPlanner(PatchSources.find(settings().patch_dir))


def _forcing(kernel: BackwardKernel, index: Index) -> Forcing:
    how: dict[str, Any] = {"kernel": kernel, "index": index}

    def applies(sample: SampleInput) -> bool:
        output, dim, _ = sample.args
        grad_input = torch.empty_like(sample.input)
        try:
            planner().plan_tensors(sample.input, output, grad_input, dim, **how)
        except MpskitError:
            return False
        return True

    def launches(dtype: torch.dtype) -> set[str]:
        suffix = f"{METAL_DTYPES[dtype]}_{index.name.lower()}"
        return {f"{name}_{suffix}" for name in _KERNELS[kernel]}

    options = {"backward_kernel": kernel, "index": index}
    return Forcing(f"{kernel.name.lower()}_{index.name.lower()}", options, applies, launches)


FORCINGS = tuple(_forcing(kernel, index) for kernel in BackwardKernel for index in Index)

"""Each kernel and index width that the plan can be made to take."""

from __future__ import annotations

from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput

from mpskit.errors import MpskitError
from mpskit.verify.plan import METAL_DTYPES, Index, Kernel, Planner
from mpskit.verify.sources import PatchSources
from opinfo.definition import Forcing
from opinfo.definitions.log_softmax.reference import row_dim
from opinfo.settings import settings

_KERNELS = {
    Kernel.ROW: ("log_softmax_row",),
    Kernel.SPLIT: ("log_softmax_partial", "log_softmax_finalize"),
    Kernel.STRIDED: ("log_softmax",),
    Kernel.LONG_STRIDED: ("log_softmax_long",),
    Kernel.TRANSPOSE: ("log_softmax_transpose",),
    Kernel.LONG_ROW: ("log_softmax_long_row",),
}


def planner() -> Planner:
    """The plan of the patch set under test."""
    return Planner(PatchSources.find(settings().patch_dir))


def _forcing(kernel: Kernel, index: Index) -> Forcing:
    options: dict[str, Any] = {"kernel": kernel, "index": index}

    def applies(sample: SampleInput) -> bool:
        output = torch.empty_like(sample.input)
        try:
            planner().plan_tensors(sample.input, output, row_dim(sample), **options)
        except MpskitError:
            return False
        return True

    def launches(dtype: torch.dtype) -> set[str]:
        suffix = f"{METAL_DTYPES[dtype]}_{index.name.lower()}"
        return {f"{name}_{suffix}" for name in _KERNELS[kernel]}

    return Forcing(f"{kernel.name.lower()}_{index.name.lower()}", options, applies, launches)


FORCINGS = tuple(_forcing(kernel, index) for kernel in Kernel for index in Index)

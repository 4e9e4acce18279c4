"""log_softmax as LogSoftmax.mm runs it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import torch

from mpskit.verify.implementation import (
    Implementation,
    Kernels,
    overlaps_differently,
    scalar_type_name,
)
from mpskit.verify.launch import run_plan
from mpskit.verify.plan import MAX_DIMS, METAL_DTYPES, Planner
from mpskit.verify.sources import PatchSources

aten = torch.ops.aten


def _refuse(input: torch.Tensor, dim: int, half_to_float: bool) -> None:
    """Raises what ``log_softmax_mps_out`` does."""
    if half_to_float:
        raise RuntimeError("log_softmax with half to float conversion is not supported on MPS")
    if input.dtype not in METAL_DTYPES:
        name = scalar_type_name(input.dtype)
        raise NotImplementedError(f"\"log_softmax\" not implemented for '{name}'")
    if input.dim() > MAX_DIMS:
        raise RuntimeError(
            f"log_softmax supports tensors with at most {MAX_DIMS} dimensions on MPS, "
            f"but got {input.dim()}"
        )


def _launch(
    kernels: Kernels, out: torch.Tensor, input: torch.Tensor, dim: int, half_to_float: bool
) -> None:
    if overlaps_differently(input, out):
        input = input.clone()
    plan = _planner(kernels.patch_dir).plan_tensors(input, out, dim, **kernels.options)
    run_plan(kernels.library, plan, input, out)


@lru_cache
def _planner(patch_dir: Path) -> Planner:
    return Planner(PatchSources.find(patch_dir))


LOG_SOFTMAX = Implementation(
    functional=aten._log_softmax.default,
    out=aten._log_softmax.out,
    composites=(aten.log_softmax.int_out,),
    kernels="aten/src/ATen/native/mps/kernels/LogSoftmax.metal",
    launch=_launch,
    refuse=_refuse,
    unwritten=1.0,  # no log-probability is positive
)

IMPLEMENTATIONS = (LOG_SOFTMAX,)

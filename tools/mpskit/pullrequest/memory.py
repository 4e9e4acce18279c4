"""What the op allocates, counted from its plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from mpskit.verify.benchmarks.workloads import DTYPES, LAYOUTS, Workload
from mpskit.verify.plan import DEFAULT_CORES, BackwardPlanner, Plan, Planner
from mpskit.verify.sources import PatchSources

# The GPU that plans are asked for: an M1 Pro.
CORES = DEFAULT_CORES


def _plan_forward(sources: PatchSources, x: torch.Tensor, dim: int) -> Plan:
    return Planner(sources).plan_tensors(x, x, dim, cores=CORES)


def _plan_backward(sources: PatchSources, x: torch.Tensor, dim: int) -> Plan:
    return BackwardPlanner(sources).plan_tensors(x, x, x, dim, cores=CORES)


@dataclass(frozen=True)
class _Asked:
    """How an op's plan is asked, and the header that answers."""

    plan: Callable[[PatchSources, torch.Tensor, int], Plan]
    header: str


_OPERATIONS = "aten/src/ATen/native/mps/operations"
_PLANS = {
    "_log_softmax.out": _Asked(_plan_forward, f"{_OPERATIONS}/LogSoftmaxPlan.h"),
    "_log_softmax_backward_data.out": _Asked(
        _plan_backward, f"{_OPERATIONS}/LogSoftmaxBackwardPlan.h"
    ),
}


@dataclass(frozen=True)
class Allocation:
    """Bytes of the result, and of the temporaries besides it, with the branch that needs them."""

    workload: Workload
    branch: str
    result: int
    temporaries: int


def is_known(function: str) -> bool:
    """Whether the plan of an op in native_functions.yaml can be asked."""
    return function in _PLANS


def allocations(patch_dir: Path, function: str, workloads: Iterable[Workload]) -> list[Allocation]:
    """Asks the op's plan below ``patch_dir`` about each workload, once for each shape and dtype."""
    sources = PatchSources.find(patch_dir)
    found = []
    for workload in workloads:
        x = torch.empty(
            workload.shape,
            dtype=DTYPES[workload.dtype],
            memory_format=LAYOUTS[workload.layout],
            device="meta",
        )
        plan = _PLANS[function].plan(sources, x, workload.dim)
        branch = plan.kernel.name.lower()
        found.append(Allocation(workload, branch, workload.tensor_bytes, plan.partials_bytes))
    return found


def plan_header(patch_dir: Path, function: str) -> Path:
    """The file that decides."""
    return patch_dir / _PLANS[function].header

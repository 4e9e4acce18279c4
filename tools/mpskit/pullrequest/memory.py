"""What the op allocates, counted from its plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from mpskit.verify.benchmarks.workloads import DTYPES, LAYOUTS, Workload
from mpskit.verify.plan import DEFAULT_CORES, Planner
from mpskit.verify.sources import PatchSources

# The op whose plan mpskit.verify.plan asks, and the GPU that it asks for: an M1 Pro.
FUNCTION = "_log_softmax.out"
CORES = DEFAULT_CORES


@dataclass(frozen=True)
class Allocation:
    """Bytes of the result, and of the temporaries besides it, with the branch that needs them."""

    workload: Workload
    branch: str
    result: int
    temporaries: int


def allocations(patch_dir: Path, workloads: Iterable[Workload]) -> list[Allocation]:
    """Asks the plan below ``patch_dir`` about each workload, once for each shape and dtype."""
    planner = Planner(PatchSources.find(patch_dir))
    found = []
    for workload in workloads:
        x = torch.empty(
            workload.shape,
            dtype=DTYPES[workload.dtype],
            memory_format=LAYOUTS[workload.layout],
            device="meta",
        )
        plan = planner.plan_tensors(x, x, workload.dim, cores=CORES)
        branch = plan.kernel.name.lower()
        found.append(Allocation(workload, branch, workload.tensor_bytes, plan.partials_bytes))
    return found


def plan_header(patch_dir: Path) -> Path:
    """The file that decides."""
    return PatchSources.find(patch_dir).plan

"""Runs a plan's launches with kernels that a backend of mpskit.metal has compiled."""

from __future__ import annotations

from typing import Any

import torch

from mpskit.verify.plan import Kernel, Launch, Plan

# What temporaries hold before a kernel writes them: a value left unwritten spreads.
_UNWRITTEN_PARTIAL = float("nan")


def run_plan(
    library: Any,
    plan: Plan,
    input: torch.Tensor,
    output: torch.Tensor,
    partials: torch.Tensor | None = None,
) -> None:
    """Writes ``log_softmax(input)`` into ``output``, both as they were when planned.

    Args:
        library: compiled from LogSoftmax.metal, for the device of both tensors.
        partials: from `allocate_partials`, for who runs a plan more than once.
    """
    if plan.kernel is Kernel.SPLIT:
        if partials is None:
            partials = allocate_partials(plan, input.device)
        partial, finalize = plan.launches
        _dispatch(library, partial, plan, input, partials)
        _dispatch(library, finalize, plan, input, partials, output)
    else:
        (launch,) = plan.launches
        _dispatch(library, launch, plan, input, output)


def allocate_partials(plan: Plan, device: torch.device) -> torch.Tensor:
    """What the two kernels of a split row exchange; empty where a plan splits none."""
    count = plan.partials_bytes // torch.float32.itemsize
    return torch.full((count,), _UNWRITTEN_PARTIAL, dtype=torch.float32, device=device)


def _dispatch(library: Any, launch: Launch, plan: Plan, *buffers: torch.Tensor) -> None:
    kernel = getattr(library, launch.kernel)
    kernel(*buffers, plan.packed_params, threads=launch.grid, group_size=launch.group)

"""Runs a plan's launches with kernels that a backend of mpskit.metal has compiled."""

from __future__ import annotations

from typing import Any

import torch

from mpskit.verify.plan import Launch, Plan

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
    _run(library, plan, (input,), (input,), output, partials)


def run_backward_plan(
    library: Any,
    plan: Plan,
    grad: torch.Tensor,
    output: torch.Tensor,
    grad_input: torch.Tensor,
    partials: torch.Tensor | None = None,
) -> None:
    """Writes ``grad - exp(output) * sum(grad)`` into ``grad_input``; as :func:`run_plan`.

    Args:
        library: compiled from LogSoftmaxBackward.metal.
    """
    _run(library, plan, (grad,), (grad, output), grad_input, partials)


def allocate_partials(plan: Plan, device: torch.device) -> torch.Tensor:
    """What the two kernels of a split row exchange; empty where a plan splits none."""
    count = plan.partials_bytes // torch.float32.itemsize
    return torch.full((count,), _UNWRITTEN_PARTIAL, dtype=torch.float32, device=device)


def _run(
    library: Any,
    plan: Plan,
    reduced: tuple[torch.Tensor, ...],
    inputs: tuple[torch.Tensor, ...],
    output: torch.Tensor,
    partials: torch.Tensor | None,
) -> None:
    """Of inputs, a partial kernel reads those that are reduced, all other kernels read all."""
    if len(plan.launches) == 1:
        _dispatch(library, plan.launches[0], plan, *inputs, output)
        return
    if partials is None:
        partials = allocate_partials(plan, output.device)
    partial, finalize = plan.launches
    _dispatch(library, partial, plan, *reduced, partials)
    _dispatch(library, finalize, plan, *inputs, partials, output)


def _dispatch(library: Any, launch: Launch, plan: Plan, *buffers: torch.Tensor) -> None:
    kernel = getattr(library, launch.kernel)
    kernel(*buffers, plan.packed_params, threads=launch.grid, group_size=launch.group)

"""The ops that can be measured: their calls, torch's own forms of them, the patch's kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mpskit.errors import MpskitError
from mpskit.verify.benchmarks.workloads import Workload
from mpskit.verify.implementation import Implementation
from mpskit.verify.launch import run_backward_plan, run_plan
from mpskit.verify.log_softmax import LOG_SOFTMAX, LOG_SOFTMAX_BACKWARD
from mpskit.verify.plan import BackwardPlanner, Planner

aten = torch.ops.aten


@dataclass(frozen=True)
class Case:
    """One call of an op: the tensors that it reads, the reduced dimension, what it writes."""

    inputs: tuple[Tensor, ...]
    dim: int
    output: Tensor


@dataclass(frozen=True)
class BenchmarkedOp:
    """What a benchmark must know of an op.

    Attributes:
        name: in aten.
        make_case: from a workload and a device, a call on tensors of random values.
        function: torch's op, from the inputs and the dimension; in any dtype.
        write: torch's op, into a case's output.
        move: reads a case's inputs and writes its output, in the order of memory, and does
            next to nothing else.
        implementation: the patch's kernels.
        planner: asks the patch's plan about a case's tensors.
        run: makes a plan's launches, from the library, the plan, the case's tensors and partials.
        reference: name of the kernels in reference.metal.
        splits: whether those include a design for few, long rows.
    """

    name: str
    make_case: Callable[[Workload, str], Case]
    function: Callable[..., Tensor]
    write: Callable[[Case], object]
    move: Callable[[Case], object]
    implementation: Implementation
    planner: Callable[..., Any]
    run: Callable[..., None]
    reference: str
    splits: bool


def find_op(name: str) -> BenchmarkedOp:
    """The op of that name.

    Raises:
        MpskitError: there is none; names those that there are.
    """
    if name not in OPS:
        raise MpskitError(
            f"There is no benchmark of {name}.", hint=f"There are {', '.join(sorted(OPS))}."
        )
    return OPS[name]


def _allocate(like: Tensor, meta: Tensor) -> Tensor:
    return torch.empty_strided(like.shape, meta.stride(), dtype=like.dtype, device=like.device)


def _in_order_of_memory(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(t.as_strided((t.numel(),), (1,)) for t in tensors)


def _make_forward(workload: Workload, device: str) -> Case:
    x = workload.make_input(device)
    # Its strides are the op's to choose.
    return Case((x,), workload.dim, _allocate(x, _log_softmax(x.to("meta"), workload.dim)))


def _log_softmax(x: Tensor, dim: int) -> Tensor:
    return torch.log_softmax(x, dim)


def _write_forward(case: Case) -> object:
    return aten._log_softmax.out(*case.inputs, case.dim, False, out=case.output)


def _negate(case: Case) -> object:
    source, target = _in_order_of_memory(*case.inputs, case.output)
    return torch.neg(source, out=target)


def _make_backward(workload: Workload, device: str) -> Case:
    grad = workload.make_input(device)
    output = torch.empty_like(grad).copy_(
        torch.log_softmax(workload.make_input(device), workload.dim)
    )
    grad_input = torch.empty(grad.shape, dtype=grad.dtype, device=device)
    return Case((grad, output), workload.dim, grad_input)


def _log_softmax_backward(grad: Tensor, output: Tensor, dim: int) -> Tensor:
    gradient: Tensor = aten._log_softmax_backward_data(grad, output, dim, grad.dtype)
    return gradient


def _write_backward(case: Case) -> object:
    grad, output = case.inputs
    return aten._log_softmax_backward_data.out(grad, output, case.dim, grad.dtype, out=case.output)


def _add(case: Case) -> object:
    grad, output, target = _in_order_of_memory(*case.inputs, case.output)
    return torch.add(grad, output, out=target)


LOG_SOFTMAX_OP = BenchmarkedOp(
    name="log_softmax",
    make_case=_make_forward,
    function=_log_softmax,
    write=_write_forward,
    move=_negate,
    implementation=LOG_SOFTMAX,
    planner=Planner,
    run=run_plan,
    reference="reference",
    splits=True,
)
LOG_SOFTMAX_BACKWARD_OP = BenchmarkedOp(
    name="log_softmax_backward",
    make_case=_make_backward,
    function=_log_softmax_backward,
    write=_write_backward,
    move=_add,
    implementation=LOG_SOFTMAX_BACKWARD,
    planner=BackwardPlanner,
    run=run_backward_plan,
    reference="reference_backward",
    splits=False,
)
OPS = {op.name: op for op in (LOG_SOFTMAX_OP, LOG_SOFTMAX_BACKWARD_OP)}

"""log_softmax and its backward as LogSoftmax.mm and LogSoftmaxBackward.mm run them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mpskit.verify.implementation import (
    Implementation,
    Kernels,
    overlaps_differently,
    scalar_type_name,
)
from mpskit.verify.launch import run_backward_plan, run_plan
from mpskit.verify.plan import MAX_DIMS, METAL_DTYPES, BackwardPlanner, Planner
from mpskit.verify.sources import PatchSources

aten = torch.ops.aten
Run = Callable[..., Tensor]


def _refuse(input: Tensor, dim: int, half_to_float: bool) -> None:
    """Raises what ``log_softmax_mps_out`` does."""
    if half_to_float:
        raise RuntimeError("log_softmax with half to float conversion is not supported on MPS")
    _refuse_tensor("log_softmax", input)


def _refuse_backward(grad: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype) -> None:
    """Raises what ``log_softmax_backward_mps_out`` does."""
    if not grad.dtype == output.dtype == input_dtype:
        raise RuntimeError(
            "log_softmax_backward with float to half conversion is not supported on MPS"
        )
    _refuse_tensor("log_softmax_backward", grad)


def _is_asked_to_convert(tensor: Tensor) -> bool:
    """Whether ``torch.log_softmax`` with a ``dtype`` leaves the conversion to the device's op."""
    return tensor.device.type == "cuda"


def _convert(run: Run, input: Tensor, dim: int, half_to_float: bool) -> Tensor | None:
    return run(input.float(), dim, False) if half_to_float and _is_asked_to_convert(input) else None


def _convert_backward(
    run: Run, grad: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype
) -> Tensor | None:
    if grad.dtype == input_dtype or not _is_asked_to_convert(grad):
        return None
    return run(grad, output, dim, grad.dtype).to(input_dtype)


def _refuse_tensor(op: str, tensor: Tensor) -> None:
    if tensor.dtype not in METAL_DTYPES:
        name = scalar_type_name(tensor.dtype)
        raise NotImplementedError(f"\"{op}\" not implemented for '{name}'")
    if tensor.dim() > MAX_DIMS:
        raise RuntimeError(
            f"{op} supports tensors with at most {MAX_DIMS} dimensions on MPS, "
            f"but got {tensor.dim()}"
        )


def _readable(input: Tensor, out: Tensor) -> Tensor:
    """``input`` itself, or a copy where writing ``out`` would change it before it is read."""
    return input.clone() if overlaps_differently(input, out) else input


def _launch(kernels: Kernels, out: Tensor, input: Tensor, dim: int, half_to_float: bool) -> None:
    input = _readable(input, out)
    how = _how(kernels, "kernel")
    plan = _planner(kernels.patch_dir).plan_tensors(input, out, dim, **how)
    run_plan(kernels.library, plan, input, out)


def _launch_backward(
    kernels: Kernels,
    grad_input: Tensor,
    grad: Tensor,
    output: Tensor,
    dim: int,
    input_dtype: torch.dtype,
) -> None:
    grad, output = _readable(grad, grad_input), _readable(output, grad_input)
    how = _how(kernels, "backward_kernel")
    planner = _backward_planner(kernels.patch_dir)
    plan = planner.plan_tensors(grad, output, grad_input, dim, **how)
    run_backward_plan(kernels.library, plan, grad, output, grad_input)


def _meta_backward(grad: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype) -> Tensor:
    """A contiguous gradient, whatever grad's strides are."""
    aten._log_softmax_backward_data.default(grad, output, dim, input_dtype)  # for its errors
    return torch.empty_like(grad, memory_format=torch.contiguous_format)


def _how(kernels: Kernels, forced: str) -> dict[str, Any]:
    """What the op under test was told of the plan; ``forced`` is its name for the branch."""
    how = dict(kernels.options)
    branches = {name: how.pop(name, None) for name in ("kernel", "backward_kernel")}
    return {**how, "kernel": branches[forced]}


@lru_cache
def _planner(patch_dir: Path) -> Planner:
    return Planner(PatchSources.find(patch_dir))


@lru_cache
def _backward_planner(patch_dir: Path) -> BackwardPlanner:
    return BackwardPlanner(PatchSources.find(patch_dir))


LOG_SOFTMAX = Implementation(
    functional=aten._log_softmax.default,
    out=aten._log_softmax.out,
    composites=(aten.log_softmax.int_out,),
    kernels="aten/src/ATen/native/mps/kernels/LogSoftmax.metal",
    launch=_launch,
    refuse=_refuse,
    convert=_convert,
    unwritten=1.0,  # no log-probability is positive
)
LOG_SOFTMAX_BACKWARD = Implementation(
    functional=aten._log_softmax_backward_data.default,
    out=aten._log_softmax_backward_data.out,
    kernels="aten/src/ATen/native/mps/kernels/LogSoftmaxBackward.metal",
    launch=_launch_backward,
    refuse=_refuse_backward,
    convert=_convert_backward,
    meta=_meta_backward,
)
IMPLEMENTATIONS = (LOG_SOFTMAX, LOG_SOFTMAX_BACKWARD)

"""What is measured against each other: each a way to make an op's call."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from mpskit.metal import compile_shader
from mpskit.patching import default_patch_set_directory
from mpskit.verify.benchmarks.ops import BenchmarkedOp, Case
from mpskit.verify.implementation import compile_kernels
from mpskit.verify.launch import allocate_partials
from mpskit.verify.plan import METAL_DTYPES
from mpskit.verify.sources import PatchSources

Call = Callable[[], object]
# From a case, the call to time.
Contender = Callable[[Case], Call]

_REFERENCE = Path(__file__).with_name("reference.metal")
# The published design takes one threadgroup a row up to this many rows, or this length.
_SPLIT_BELOW_ROWS = 256
_SPLIT_ABOVE_SIZE = 2048
_REFERENCE_CHUNK = 4096
_REFERENCE_THREADS = 256


def patch_kernels(op: BenchmarkedOp, backend: str, patch_dir: Path | None, cores: int) -> Contender:
    """The patch's kernels, as its plan launches them."""
    planner = op.planner(PatchSources.find(patch_dir or default_patch_set_directory()))
    library = compile_kernels(op.implementation, backend, patch_dir=patch_dir)

    def prepare(case: Case) -> Call:
        plan = planner.plan_tensors(*case.inputs, case.output, case.dim, cores=cores)
        partials = allocate_partials(plan, case.output.device)
        return lambda: op.run(library, plan, *case.inputs, case.output, partials)

    return prepare


def torch_op(op: BenchmarkedOp) -> Contender:
    """The op that torch has on the device."""
    return lambda case: lambda: op.write(case)


def compiled_op(op: BenchmarkedOp) -> Contender:
    """torch.compile's own kernel, for each shape anew."""
    torch._dynamo.config.recompile_limit = 1000  # beyond it, calls would be eager
    compiled = torch.compile(op.function, dynamic=False)
    return lambda case: lambda: compiled(*case.inputs, case.dim)


def moving(op: BenchmarkedOp) -> Contender:
    """An elementwise op of torch that reads and writes what the op must, once."""
    return lambda case: lambda: op.move(case)


def device_copy(case: Case) -> Call:
    """The device's own copy, where an op reads and writes the same number of bytes."""
    (x,) = case.inputs
    # In the order of memory, whatever the two tensors' strides are.
    source, target = (t.as_strided((t.numel(),), (1,)) for t in (x, case.output))
    return lambda: target.copy_(source)


def reference_design(op: BenchmarkedOp, backend: str) -> Contender:
    """The plain design that reads whole rows for each step; see reference.metal."""
    library = _reference(backend)

    def kernel(name: str, dtype: torch.dtype) -> Any:
        return getattr(library, f"{op.reference}_{name}_{METAL_DTYPES[dtype]}")

    def prepare(case: Case) -> Call:
        x = case.inputs[0]
        dim = case.dim % x.dim()
        size = x.shape[dim]
        rows = x.numel() // size
        split = op.splits and size > _SPLIT_ABOVE_SIZE and rows < _SPLIT_BELOW_ROWS
        chunk = min(size, _REFERENCE_CHUNK) if split else size
        chunks = math.ceil(size / chunk)
        params = struct.pack("<7I", size, x.stride(dim), *_rows(x, dim), chunk, chunks)
        threads = min(_REFERENCE_THREADS, 32 * math.ceil(chunk / 32))
        if not split:
            row = kernel("row", x.dtype)
            grid = {"threads": rows * threads, "group_size": threads}
            return lambda: row(*case.inputs, case.output, params, **grid)
        partials = torch.empty(rows * chunks * 2, dtype=torch.float32, device=x.device)
        partial, finalize = kernel("partial", x.dtype), kernel("finalize", x.dtype)
        grid_of_chunks = {"threads": (chunks * threads, rows), "group_size": (threads, 1)}

        def run() -> None:
            partial(x, partials, params, **grid_of_chunks)
            finalize(x, partials, case.output, params, **grid_of_chunks)

        return run

    return prepare


@lru_cache
def _reference(backend: str) -> Any:
    return compile_shader(_REFERENCE, backend=backend)


def _rows(x: torch.Tensor, dim: int) -> tuple[int, int, int]:
    """Inner size, inner stride and outer stride of the rows of a dense tensor."""
    inner_stride = min(
        (x.stride(d) for d in range(x.dim()) if d != dim and x.shape[d] > 1), default=1
    )
    if x.stride(dim) <= inner_stride or x.shape[dim] == 1:
        # Rows are dense one after the other, in whatever order.
        return x.numel() // x.shape[dim], inner_stride, 0
    inner_size = x.stride(dim) // inner_stride
    return inner_size, inner_stride, x.stride(dim) * x.shape[dim]

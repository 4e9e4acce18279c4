"""What is measured against each other: each a way to compute log_softmax into a given output."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from mpskit.metal import compile_shader
from mpskit.verify.launch import allocate_partials, run_plan
from mpskit.verify.plan import METAL_DTYPES, Planner
from mpskit.verify.sources import PatchSources

Call = Callable[[], object]
# From an input, an output of its layout and a dimension: the call to time.
Contender = Callable[[torch.Tensor, torch.Tensor, int], Call]

_REFERENCE = Path(__file__).with_name("reference.metal")
# The published design takes one threadgroup a row up to this many rows, or this length.
_SPLIT_BELOW_ROWS = 256
_SPLIT_ABOVE_SIZE = 2048
_REFERENCE_CHUNK = 4096
_REFERENCE_THREADS = 256


def patch_kernels(backend: str, patch_dir: Path | None, cores: int) -> Contender:
    """The patch's kernels, as its plan launches them."""
    sources = PatchSources.find(patch_dir)
    planner = Planner(sources)
    library = compile_shader(sources.kernels, backend=backend, include_dirs=sources.include_dirs)

    def prepare(x: torch.Tensor, out: torch.Tensor, dim: int) -> Call:
        plan = planner.plan_tensors(x, out, dim, cores=cores)
        partials = allocate_partials(plan, x.device)
        return lambda: run_plan(library, plan, x, out, partials)

    return prepare


def torch_op() -> Contender:
    """The op that torch has on the device."""

    def prepare(x: torch.Tensor, out: torch.Tensor, dim: int) -> Call:
        return lambda: torch.ops.aten._log_softmax.out(x, dim, False, out=out)

    return prepare


def compiled_op() -> Contender:
    """torch.compile's own kernel, for each shape anew."""
    torch._dynamo.config.recompile_limit = 1000  # beyond it, calls would be eager
    compiled = torch.compile(lambda x, dim: torch.log_softmax(x, dim), dynamic=False)

    def prepare(x: torch.Tensor, out: torch.Tensor, dim: int) -> Call:
        return lambda: compiled(x, dim)

    return prepare


def device_copy() -> Contender:
    """A copy of the same bytes: the limit for an op that reads and writes each element once."""

    def prepare(x: torch.Tensor, out: torch.Tensor, dim: int) -> Call:
        # In the order of memory, whatever the two tensors' strides are.
        source, target = (t.as_strided((t.numel(),), (1,)) for t in (x, out))
        return lambda: target.copy_(source)

    return prepare


def reference_design(backend: str) -> Contender:
    """The plain design that reads each row three times; see reference.metal."""
    library = _reference(backend)

    def prepare(x: torch.Tensor, out: torch.Tensor, dim: int) -> Call:
        dim %= x.dim()
        size = x.shape[dim]
        rows = x.numel() // size
        split = size > _SPLIT_ABOVE_SIZE and rows < _SPLIT_BELOW_ROWS
        chunk = min(size, _REFERENCE_CHUNK) if split else size
        chunks = math.ceil(size / chunk)
        params = struct.pack("<7I", size, x.stride(dim), *_rows(x, dim), chunk, chunks)
        dtype = METAL_DTYPES[x.dtype]
        threads = min(_REFERENCE_THREADS, 32 * math.ceil(chunk / 32))
        if not split:
            row: Any = getattr(library, f"reference_row_{dtype}")
            return lambda: row(x, out, params, threads=rows * threads, group_size=threads)
        partials = torch.empty(rows * chunks * 2, dtype=torch.float32, device=x.device)
        partial: Any = getattr(library, f"reference_partial_{dtype}")
        finalize: Any = getattr(library, f"reference_finalize_{dtype}")
        grid = {"threads": (chunks * threads, rows), "group_size": (threads, 1)}

        def run() -> None:
            partial(x, partials, params, **grid)
            finalize(x, partials, out, params, **grid)

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

"""log_softmax_row of the patch set, ready to be launched on the cpu backend."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from mpskit.metal import compile_shader
from mpskit.verify.launch import run_plan
from mpskit.verify.plan import Kernel, Planner
from mpskit.verify.sources import PatchSources


def compile_kernels(*, sanitize: bool = False) -> Any:
    """LogSoftmax.metal with all its kernels, or what the cache has of it."""
    sources = PatchSources.find()
    return compile_shader(sources.kernels, include_dirs=sources.include_dirs, sanitize=sanitize)


@dataclass
class RowKernel:
    """The kernel with random float32 rows to work on; ``library`` is from `compile_kernels`."""

    library: Any
    rows: int
    columns: int
    input: torch.Tensor = field(init=False)
    output: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.input = torch.randn(self.rows, self.columns)
        self.output = torch.zeros_like(self.input)
        planner = Planner(PatchSources.find())
        self._plan = planner.plan_tensors(self.input, self.output, 1, kernel=Kernel.ROW)

    def seconds(self) -> float:
        """Of one launch."""
        return self._measured(time.perf_counter)

    def processor_seconds(self) -> float:
        """Of one launch, on all cores together: a busy machine changes them little."""
        return self._measured(time.process_time)

    def _measured(self, clock: Callable[[], float]) -> float:
        begin = clock()
        run_plan(self.library, self._plan, self.input, self.output)
        return clock() - begin

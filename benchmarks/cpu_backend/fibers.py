"""What threads cost, and on how many stacks they run."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from mpskit.metal import compile_shader

KERNELS = ("alone", "with_its_simdgroup", "with_its_threadgroup")
GROUP = 256
_THREADS = 1 << 18


@dataclass(frozen=True)
class Fibers:
    """Of a kernel's threads: nanoseconds that each took, and the number of their stacks."""

    nanoseconds: float
    stacks_of_a_threadgroup: int


def measure(launches: int) -> dict[str, Fibers]:
    """Each kernel of fibers.metal, by name."""
    library = compile_shader(Path(__file__).with_name("fibers.metal"))
    stacks = torch.zeros(_THREADS, dtype=torch.int64)
    measured = {}
    for name in KERNELS:
        seconds = []
        for _ in range(launches):
            begin = time.perf_counter()
            getattr(library, name)(stacks, threads=_THREADS, group_size=GROUP)
            seconds.append(time.perf_counter() - begin)
        count = int(stacks[:GROUP].unique().numel())
        measured[name] = Fibers(1e9 * statistics.median(seconds) / _THREADS, count)
    return measured

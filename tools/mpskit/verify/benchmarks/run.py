"""Runs workloads through all contenders and collects the figures."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from mpskit.errors import MpskitError
from mpskit.verify.accuracy import Errors, errors_against
from mpskit.verify.benchmarks import contenders
from mpskit.verify.benchmarks.ops import LOG_SOFTMAX_OP, BenchmarkedOp, Case
from mpskit.verify.benchmarks.timing import (
    Repeated,
    Timing,
    copies_needed,
    device_name,
    geometric_mean,
    measure,
)
from mpskit.verify.benchmarks.workloads import Workload
from mpskit.verify.plan import DEFAULT_CORES
from mpskit.verify.tested import sources_under_test

OURS, REFERENCE, TORCH, COMPILED = "kernels", "reference", "torch", "torch.compile"
# What moves the op's bytes and no more. A device's own copy is slow at some sizes and addresses.
COPY, MOVE = "copy", "elementwise"
TORCH_CPU = "torch cpu"
BASELINES = (REFERENCE, TORCH, COMPILED)


@dataclass(frozen=True)
class Measurement:
    """One workload's timings, by contender; a contender that failed has a reason instead.

    ``errors`` are against float64, by contender, where they were asked for.
    """

    workload: Workload
    timings: dict[str, Timing]
    failures: dict[str, str]
    errors: dict[str, Errors]

    def share_of_limit(self, contender: str = OURS) -> float:
        """The least time that moves the same bytes, over the contender's: 1 is all there is."""
        return self.limit / self.timings[contender].median

    @property
    def limit(self) -> float:
        """Microseconds of a copy, or of an elementwise op, whichever is faster."""
        return min(self.timings[name].median for name in (COPY, MOVE) if name in self.timings)

    def speed_up(self, baseline: str) -> float | None:
        """How much faster than a baseline the kernels are; None where it did not run."""
        if baseline not in self.timings:
            return None
        return self.timings[baseline].median / self.timings[OURS].median


@dataclass(frozen=True)
class Report:
    """All measurements of one run, with what it takes to repeat it.

    ``patch_files`` has the SHA-256 of the patch set's sources that were measured, by path.
    """

    device: str
    backend: str
    torch_version: str
    date: str
    command: str
    measurements: tuple[Measurement, ...]
    patch_files: dict[str, str] = field(default_factory=dict)
    op: str = LOG_SOFTMAX_OP.name

    def mean_speed_up(self, baseline: str, *, memory_bound_only: bool = False) -> float:
        """Geometric mean over the workloads for which the baseline ran."""
        speed_ups = (
            m.speed_up(baseline)
            for m in self.measurements
            if m.workload.is_memory_bound or not memory_bound_only
        )
        return geometric_mean([s for s in speed_ups if s is not None])

    def to_json(self) -> dict[str, Any]:
        """For programs; microseconds throughout."""
        return asdict(self)


def run_benchmark(
    workloads: Sequence[Workload],
    *,
    backend: str,
    op: BenchmarkedOp = LOG_SOFTMAX_OP,
    patch_dir: Path | None = None,
    cores: int | None = None,
    accuracy: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Measures the patch's kernels and the baselines on a backend's device.

    Args:
        workloads: what to run.
        backend: cpu, cuda or mps.
        op: what the workloads are calls of.
        patch_dir: where the kernels are; mpskit's own patch set by default.
        cores: GPU cores that the plan counts on; the device's own by default.
        accuracy: also compare results with float64.
        progress: called with the number of workloads done and their total.
    """
    _check_device(backend)
    runners = {
        OURS: contenders.patch_kernels(op, backend, patch_dir, cores or _cores(backend)),
        REFERENCE: contenders.reference_design(op, backend),
        TORCH: contenders.torch_op(op),
        COMPILED: contenders.compiled_op(op),
        MOVE: contenders.moving(op),
    }
    if op is LOG_SOFTMAX_OP:
        runners[COPY] = contenders.device_copy
    measurements = []
    for done, workload in enumerate(workloads):
        progress(done, len(workloads))
        measurements.append(_measure(op, workload, runners, backend, accuracy))
    progress(len(workloads), len(workloads))
    return Report(
        device=device_name(backend),
        backend=backend,
        torch_version=torch.__version__,
        date=datetime.date.today().isoformat(),
        command=" ".join(["mpskit", *sys.argv[1:]]),
        measurements=tuple(measurements),
        patch_files=sources_under_test(patch_dir),
        op=op.name,
    )


def _check_device(backend: str) -> None:
    available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if not available[backend]:
        raise MpskitError(
            f"There is no {backend} device that torch {torch.__version__} can use.",
            hint="Use --backend cpu, or run this where such a device is.",
        )


def _cores(backend: str) -> int:
    if backend == "cuda":
        return int(torch.cuda.get_device_properties(0).multi_processor_count)
    if backend == "mps":
        return int(torch._C._mps_get_core_count())
    return DEFAULT_CORES


def _measure(
    op: BenchmarkedOp,
    workload: Workload,
    runners: dict[str, contenders.Contender],
    backend: str,
    accuracy: bool,
) -> Measurement:
    count = copies_needed(workload.tensor_bytes, backend)
    cases = [op.make_case(workload, backend) for _ in range(count)]
    exact = _exact(op, cases[0]) if accuracy else None
    ready: dict[str, Repeated] = {}
    failures: dict[str, str] = {}
    errors: dict[str, Errors] = {}
    for name, prepare in runners.items():
        try:
            calls = [prepare(case) for case in cases]
            calls[0]()
            if exact is not None and name in (OURS, TORCH):
                errors[name] = errors_against(exact, cases[0].output)
            ready[name] = Repeated(calls, backend)
        except (RuntimeError, ImportError) as error:
            if name in (OURS, MOVE):
                raise
            failures[name] = str(error).strip().splitlines()[0] if str(error) else repr(error)
    if exact is not None and backend != "cpu":
        on_cpu = op.function(*(x.cpu() for x in cases[0].inputs), cases[0].dim)
        errors[TORCH_CPU] = errors_against(exact, on_cpu.to(backend))
    return Measurement(workload, measure(ready), failures, errors)


def _exact(op: BenchmarkedOp, case: Case) -> torch.Tensor:
    return op.function(*(x.double() for x in case.inputs), case.dim)

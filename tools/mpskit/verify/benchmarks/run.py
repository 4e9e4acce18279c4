"""Runs workloads through all contenders and collects the figures."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from mpskit.errors import MpskitError
from mpskit.verify.accuracy import Errors, errors_against
from mpskit.verify.benchmarks import contenders
from mpskit.verify.benchmarks.timing import (
    Timing,
    copies_needed,
    device_name,
    geometric_mean,
    measure,
)
from mpskit.verify.benchmarks.workloads import Workload
from mpskit.verify.plan import DEFAULT_CORES
from mpskit.verify.tested import sources_under_test

OURS, REFERENCE, TORCH, COMPILED, COPY = "kernels", "reference", "torch", "torch.compile", "copy"
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
        """A device copy's time over the contender's: 1 is all that memory allows."""
        return self.timings[COPY].median / self.timings[contender].median

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
    patch_dir: Path | None = None,
    cores: int | None = None,
    accuracy: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Measures the patch's kernels and the baselines on a backend's device.

    Args:
        workloads: what to run.
        backend: cpu, cuda or mps.
        patch_dir: where the kernels are; mpskit's own patch set by default.
        cores: GPU cores that the plan counts on; the device's own by default.
        accuracy: also compare results with float64.
        progress: called with the number of workloads done and their total.
    """
    _check_device(backend)
    runners = {
        OURS: contenders.patch_kernels(backend, patch_dir, cores or _cores(backend)),
        REFERENCE: contenders.reference_design(backend),
        TORCH: contenders.torch_op(),
        COMPILED: contenders.compiled_op(),
        COPY: contenders.device_copy(),
    }
    measurements = []
    for done, workload in enumerate(workloads):
        progress(done, len(workloads))
        measurements.append(_measure(workload, runners, backend, accuracy))
    progress(len(workloads), len(workloads))
    return Report(
        device=device_name(backend),
        backend=backend,
        torch_version=torch.__version__,
        date=datetime.date.today().isoformat(),
        command=" ".join(["mpskit", *sys.argv[1:]]),
        measurements=tuple(measurements),
        patch_files=sources_under_test(patch_dir),
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


def _make_output(x: torch.Tensor, dim: int) -> torch.Tensor:
    """What the op allocates for an input: its strides are the op's to choose."""
    meta = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
    strides = torch.ops.aten._log_softmax.default(meta, dim, False).stride()
    return torch.empty_strided(x.shape, strides, dtype=x.dtype, device=x.device)


def _measure(
    workload: Workload,
    runners: dict[str, contenders.Contender],
    backend: str,
    accuracy: bool,
) -> Measurement:
    count = copies_needed(workload.tensor_bytes, backend)
    inputs = [workload.make_input(backend) for _ in range(count)]
    outputs = [_make_output(x, workload.dim) for x in inputs]
    timings: dict[str, Timing] = {}
    failures: dict[str, str] = {}
    errors: dict[str, Errors] = {}

    @lru_cache(maxsize=1)
    def reference() -> torch.Tensor:
        return torch.log_softmax(inputs[0].double(), workload.dim)

    for name, prepare in runners.items():
        try:
            calls = [prepare(x, out, workload.dim) for x, out in zip(inputs, outputs, strict=True)]
            timings[name] = measure(calls, backend)
            if accuracy and name in (OURS, TORCH):
                errors[name] = errors_against(reference(), outputs[0])
        except (RuntimeError, ImportError) as error:
            if name in (OURS, COPY):
                raise
            failures[name] = str(error).strip().splitlines()[0] if str(error) else repr(error)
    if accuracy and backend != "cpu":
        on_cpu = torch.log_softmax(inputs[0].cpu(), workload.dim)
        errors[TORCH_CPU] = errors_against(reference(), on_cpu.to(backend))
    return Measurement(workload, timings, failures, errors)

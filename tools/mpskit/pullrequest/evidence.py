"""What runs have shown, read from the files that they left: a test report and benchmarks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from mpskit.errors import MpskitError
from mpskit.verify.accuracy import Errors
from mpskit.verify.benchmarks.ops import OPS
from mpskit.verify.benchmarks.run import REFERENCE, TORCH, Measurement, Report
from mpskit.verify.benchmarks.timing import Timing
from mpskit.verify.benchmarks.workloads import Workload
from mpskit.verify.reports.result import SuiteResult

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Source:
    """A file that numbers come from, named and pinned by the SHA-256 of its bytes."""

    name: str
    digest: str

    @classmethod
    def of(cls, file: Path, content: bytes) -> Source:
        return cls(file.name, hashlib.sha256(content).hexdigest())

    def __str__(self) -> str:
        return f"`{self.name}`, SHA-256 `{self.digest[:16]}`"


@dataclass(frozen=True)
class TestReport:
    """A run of ``mpskit test --json``."""

    source: Source
    result: SuiteResult


@dataclass(frozen=True)
class Bench:
    """A run of ``mpskit bench --json``."""

    source: Source
    report: Report

    @property
    def function(self) -> str:
        """The op that was measured, as native_functions.yaml names it."""
        known = OPS.get(self.report.op)
        overload = known.implementation.out if known else None
        return overload.name().removeprefix("aten::") if overload else self.report.op

    @property
    def baseline(self) -> str:
        """What the kernels are compared with: on MPS what they replace, torch's own op there.

        Elsewhere torch's op is another device's, and the plain design that reads each row three
        times, run through the same backend, stands in for it where it was measured.
        """
        has_reference = any(REFERENCE in item.timings for item in self.report.measurements)
        return REFERENCE if self.report.backend != "mps" and has_reference else TORCH


def load_test_report(file: Path) -> TestReport:
    """Reads what ``mpskit test --json`` printed into ``file``.

    Raises:
        MpskitError: it is not that.
    """
    source, result = _load(file, "mpskit test --json", SuiteResult.from_json)
    return TestReport(source, result)


def load_benches(file: Path) -> tuple[Bench, ...]:
    """Reads what ``mpskit bench --json`` printed into ``file``, or several such, by name.

    Raises:
        MpskitError: it is not that, or it measured nothing.
    """
    source, reports = _load(file, "mpskit bench --json", _bench_reports)
    if not all(report.measurements for report in reports):
        raise MpskitError(f"{file} has no measurements.", hint=f"mpskit bench --json > {file}")
    return tuple(Bench(source, report) for report in reports)


def _load(
    file: Path, command: str, read: Callable[[dict[str, Any]], _Made]
) -> tuple[Source, _Made]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise MpskitError(
            f"{file} cannot be read: {error.strerror}.", hint=f"Make it: {command} > {file}"
        ) from None
    try:
        return Source.of(file, content), read(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MpskitError(
            f"{file} is not what `{command}` prints: {error!r}.",
            hint=f"Make it again: {command} > {file}",
        ) from None


def _bench_reports(data: dict[str, Any]) -> list[Report]:
    several = "measurements" not in data and bool(data)
    return list(map(_bench_report, data.values())) if several else [_bench_report(data)]


def _bench_report(data: dict[str, Any]) -> Report:
    measurements = tuple(map(_measurement, data["measurements"]))
    return _make(Report, {**data, "measurements": measurements})


def _measurement(data: dict[str, Any]) -> Measurement:
    workload = data["workload"]
    published = workload.get("published")
    return Measurement(
        workload=_make(
            Workload,
            {
                **workload,
                "shape": tuple(workload["shape"]),
                "published": tuple(published) if published else None,
            },
        ),
        timings={name: _make(Timing, item) for name, item in data["timings"].items()},
        failures=data["failures"],
        errors={name: _make(Errors, item) for name, item in data["errors"].items()},
    )


def _make(kind: type[_Made], data: dict[str, Any]) -> _Made:
    """A dataclass from those of ``data`` that are its fields; the file may say more."""
    names = [item.name for item in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: data[name] for name in names if name in data})

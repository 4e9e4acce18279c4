"""What a run of the suite has shown, as data."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from math import inf, isfinite
from typing import Any, TypeVar

_Made = TypeVar("_Made")

# The kernels' element types in Metal, by the names that host names have.
METAL_DTYPES = {"float": "float32", "half": "float16", "bfloat": "bfloat16"}
_INDEX_WIDTHS = ("u32", "u64")


@dataclass(frozen=True)
class Failure:
    """A failed test: what it says, and the command that runs it again on that sample alone."""

    test: str
    message: str
    reproduce: str


@dataclass(frozen=True)
class WorstError:
    """The largest error against float64 in ULP, and the sample input that it was found in.

    ``reproduce`` is the command that runs that sample again.
    """

    ulp: float
    sample: str
    reproduce: str = ""


@dataclass(frozen=True)
class Outcomes:
    """How many tests passed, failed and were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.skipped


@dataclass(frozen=True)
class Case:
    """One test that was run; ``message`` says why it failed or was skipped."""

    test: str
    outcome: str
    seconds: float
    message: str = ""


@dataclass(frozen=True)
class OpResult:
    """What was seen of one op.

    Attributes:
        samples: samples compared with float64, by dtype of the result.
        input_layouts, output_layouts: of those samples and results, by name.
        launches: by host name of the kernel.
        worst: the kernels' largest error, by dtype of the result.
        cpu_worst: that of torch's CPU kernel on the same samples.
    """

    samples: dict[str, int]
    input_layouts: dict[str, int]
    output_layouts: dict[str, int]
    launches: dict[str, int]
    worst: dict[str, WorstError]
    cpu_worst: dict[str, WorstError]


@dataclass(frozen=True)
class SuiteResult:
    """What a run of the suite has shown.

    Attributes:
        backend: the one of mpskit.metal that ran the kernels.
        seconds: wall time.
        tests: outcomes by dtype of the test's input, ``none`` where it has no one dtype.
        ops: by name of the op.
        launches: by host name of the kernel, those that belong to no sample too.
        kernels: every kernel of the patch set, without dtype and index width.
        failures: in the order in which they happened.
        closing_line: pytest's own count.
        chosen: the options that chose a part of the suite; empty for a whole run.
        sanitize: whether every access of the kernels was watched.
        patch_files: SHA-256 of the patch set's sources that were tested, by path.
        torch: its version.
        date: of the run, YYYY-MM-DD.
        cases: every test; not in a report's JSON.
    """

    backend: str
    seconds: float
    tests: dict[str, Outcomes]
    ops: dict[str, OpResult]
    launches: dict[str, int]
    kernels: tuple[str, ...]
    failures: tuple[Failure, ...]
    closing_line: str
    chosen: tuple[str, ...] = ()
    sanitize: bool = False
    patch_files: dict[str, str] = field(default_factory=dict)
    torch: str = ""
    date: str = ""
    cases: tuple[Case, ...] = ()

    @property
    def passed(self) -> int:
        return sum(outcomes.passed for outcomes in self.tests.values())

    @property
    def failed(self) -> int:
        return len(self.failures)

    @property
    def skipped(self) -> int:
        return sum(outcomes.skipped for outcomes in self.tests.values())

    @property
    def samples(self) -> dict[str, int]:
        """Samples of all ops, by dtype of the result."""
        counts: Counter[str] = Counter()
        for op in self.ops.values():
            counts.update(op.samples)
        return dict(sorted(counts.items()))

    @property
    def worst(self) -> dict[str, WorstError]:
        """The largest errors of all ops, by dtype of the result."""
        return worst_of(op.worst for op in self.ops.values())

    @property
    def launches_by_kernel(self) -> dict[str, int]:
        """Launches of each kernel of the patch set, all dtypes and index widths together."""
        counts = Counter(dict.fromkeys(self.kernels, 0))
        for host_name, count in self.launches.items():
            counts[split_host_name(host_name)[0]] += count
        return dict(counts)

    @property
    def never_launched(self) -> tuple[str, ...]:
        """Kernels that no test has run."""
        return tuple(name for name, count in self.launches_by_kernel.items() if not count)

    @property
    def ok(self) -> bool:
        """Whether all passed, and a whole run launched every kernel."""
        return not self.failures and bool(self.chosen or not self.never_launched)

    def to_json(self) -> dict[str, Any]:
        """Everything above but ``cases`` as plain data; an infinite error is null."""
        data = dataclasses.asdict(dataclasses.replace(self, cases=()))
        del data["cases"]
        derived = {
            "samples": self.samples,
            "worst": {dtype: dataclasses.asdict(error) for dtype, error in self.worst.items()},
            "passed": self.passed,
            "failed": self.failed,
            "skipped": self.skipped,
            "launches_by_kernel": self.launches_by_kernel,
            "never_launched": self.never_launched,
            "ok": self.ok,
        }
        plain: dict[str, Any] = _plain({**data, **derived})
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SuiteResult:
        """The inverse of ``to_json``; what the data say besides is left out.

        Raises:
            KeyError, TypeError, AttributeError: it is no such data.
        """
        return _make(
            cls,
            {
                **data,
                "tests": {name: _make(Outcomes, item) for name, item in data["tests"].items()},
                "ops": {name: _op_result(item) for name, item in data["ops"].items()},
                "kernels": tuple(data["kernels"]),
                "failures": tuple(_make(Failure, item) for item in data["failures"]),
                "chosen": tuple(data["chosen"]),
            },
        )


def worst_of(errors: Iterable[Mapping[str, WorstError]]) -> dict[str, WorstError]:
    """The largest error of each dtype among several ops or tests."""
    worst: dict[str, WorstError] = {}
    for found in errors:
        for dtype, error in found.items():
            if dtype not in worst or error.ulp > worst[dtype].ulp:
                worst[dtype] = error
    return dict(sorted(worst.items()))


def split_host_name(host_name: str) -> tuple[str, str, str]:
    """Kernel, Metal dtype and index width: ``log_softmax_row_half_u32`` has all three.

    What a host name does not end with is empty.
    """
    kernel, index = _split_off(host_name, _INDEX_WIDTHS)
    kernel, dtype = _split_off(kernel, METAL_DTYPES)
    return kernel, dtype, index


def _split_off(name: str, endings: Iterable[str]) -> tuple[str, str]:
    stem, _, last = name.rpartition("_")
    return (stem, last) if stem and last in endings else (name, "")


def _op_result(data: Mapping[str, Any]) -> OpResult:
    errors = {name: _errors(data[name]) for name in ("worst", "cpu_worst")}
    return _make(OpResult, {**data, **errors})


def _errors(data: Mapping[str, Any]) -> dict[str, WorstError]:
    return {
        dtype: _make(WorstError, {**item, "ulp": inf if item["ulp"] is None else item["ulp"]})
        for dtype, item in data.items()
    }


def _plain(value: Any) -> Any:
    """Data that JSON has: tuples become lists, and what is not finite null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _make(kind: type[_Made], data: Mapping[str, Any]) -> _Made:
    """A dataclass from those of ``data`` that are its fields."""
    names = [item.name for item in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: data[name] for name in names if name in data})

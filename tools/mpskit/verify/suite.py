"""Runs the OpInfo suite with pytest and gathers what its tests report."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import IO, Any

from mpskit.errors import MpskitError
from mpskit.verify.implementation import Implementation, compile_kernels
from mpskit.verify.log_softmax import IMPLEMENTATIONS
from mpskit.verify.plan import Planner
from mpskit.verify.sources import PatchSources

# Tests that have no dtype, such as those of error inputs, are counted under this name.
NO_DTYPE = "none"
_DTYPES = ("float32", "float16", "bfloat16", "bool", "uint8", "int8", "int16", "int32", "int64")
# pytest's exit codes for a run that took place, whatever came out of it.
_TESTS_RAN = (0, 1)
_NO_TESTS = 5
# What would make pytest run something else than what was asked for.
_FOREIGN_ENVIRONMENT = ("PYTEST_ADDOPTS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTEST_PLUGINS")


@dataclass(frozen=True)
class Failure:
    """A failed test: what it says, and the command that runs it again on that sample alone."""

    test: str
    message: str
    reproduce: str


@dataclass(frozen=True)
class WorstError:
    """The largest error against float64 in ULP, and the sample input that it was found in."""

    ulp: float
    sample: str


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
class SuiteResult:
    """What a run of the suite has shown.

    Attributes:
        backend: the one of mpskit.metal that ran the kernels.
        expression: of ``-k``; None when every test ran.
        seconds: wall time.
        tests: outcomes by dtype of the test's input, ``none`` where it has no one dtype.
        samples: samples compared with float64, by dtype of the result.
        launches: by host name of the kernel.
        kernels: every kernel of the patch set, without dtype and index width.
        worst: by dtype of the result.
        closing_line: pytest's own count.
    """

    backend: str
    expression: str | None
    seconds: float
    tests: dict[str, Outcomes]
    samples: dict[str, int]
    launches: dict[str, int]
    kernels: tuple[str, ...]
    worst: dict[str, WorstError]
    failures: tuple[Failure, ...]
    closing_line: str

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
        return not self.failures and (self.expression is not None or not self.never_launched)

    def to_json(self) -> dict[str, Any]:
        """Everything above as plain data; an infinite error, which JSON has not, is null."""
        return {
            **dataclasses.asdict(self),
            "worst": {
                dtype: {"ulp": worst.ulp if isfinite(worst.ulp) else None, "sample": worst.sample}
                for dtype, worst in self.worst.items()
            },
            "passed": self.passed,
            "failed": self.failed,
            "skipped": self.skipped,
            "launches_by_kernel": self.launches_by_kernel,
            "never_launched": list(self.never_launched),
            "ok": self.ok,
        }


def split_host_name(host_name: str) -> tuple[str, str, str]:
    """Kernel, Metal dtype and index width: ``log_softmax_row_half_u32`` has all three."""
    kernel, dtype, index = host_name.rsplit("_", 2)
    return kernel, dtype, index


def run_suite(
    backend: str = "cpu",
    expression: str | None = None,
    workers: int | None = None,
    patch_set: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    on_failure: Callable[[Failure], None] | None = None,
    fail_fast: bool = False,
) -> SuiteResult:
    """Runs the tests in processes of their own, so that a kernel that crashes fails one test.

    Args:
        backend: of :func:`mpskit.metal.compile_shader`.
        expression: pytest's ``-k``.
        workers: test processes; one for each core by default.
        patch_set: mirrors the PyTorch tree; None for the package's own patch set.
        progress: called with tests done and tests in all.
        on_failure: called when a test has failed.
        fail_fast: ends the run at the first failure.

    Raises:
        MpskitError: nothing could be run; a kernel that does not compile, or no such test.
    """
    begin = time.perf_counter()
    kernels = _compile(backend, patch_set)
    tally = _Tally(_rerun_options(backend, patch_set), progress, on_failure)
    arguments = [f"--backend={backend}"]
    if expression is not None:
        arguments += ["-k", expression]
    if patch_set is not None:
        arguments.append(f"--patch-set={patch_set.resolve()}")
    if fail_fast:
        arguments.append("--maxfail=1")
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        spread = (f"--numprocesses={workers or _cores()}", "--dist=worksteal")
        code = _run_pytest([*arguments, *spread], output, tally)
        output.seek(0)
        text = output.read()
    if code not in _TESTS_RAN and not tally.failures:
        raise _no_run(code, arguments, text)
    return SuiteResult(
        backend=backend,
        expression=expression,
        seconds=time.perf_counter() - begin,
        tests={dtype: Outcomes(**counts) for dtype, counts in sorted(tally.tests.items())},
        samples=dict(sorted(tally.samples.items())),
        launches=dict(sorted(tally.launches.items())),
        kernels=kernels,
        worst=dict(sorted(tally.worst.items())),
        failures=tuple(tally.failures),
        closing_line=_closing_line(text),
    )


def _compile(backend: str, patch_set: Path | None) -> tuple[str, ...]:
    """Fills the caches of compiled code before the workers need it; returns the kernels' names."""
    names: set[str] = set()
    for implementation in _implementations(patch_set):
        library = compile_kernels(implementation, backend, patch_dir=patch_set)
        names |= {split_host_name(name)[0] for name in dir(library)}
    return tuple(sorted(names))


def _implementations(patch_set: Path | None) -> Iterable[Implementation]:
    """Those of the ops that a patch set brings, or of mpskit's own.

    PyTorch's OpInfo data, which take seconds to import, are needed only for the former.
    """
    if patch_set is None or not (patch_set / "opinfo").is_dir():
        Planner(PatchSources.find(patch_set))
        return IMPLEMENTATIONS
    from opinfo.definitions import definitions_in

    definitions = definitions_in(patch_set.resolve() / "opinfo")
    return dict.fromkeys(each for item in definitions for each in item.implementations)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _suite_dir() -> Path:
    spec = importlib.util.find_spec("opinfo")
    if spec is None or spec.origin is None:
        raise MpskitError("The opinfo package is missing.", hint="Install mpskit again.")
    return Path(spec.origin).parent


def _no_run(code: int, arguments: list[str], output: str) -> MpskitError:
    """Why no test was run: pytest-xdist's workers do not say what they died of."""
    alone = subprocess.run(
        [*_pytest_command(), *arguments, "--collect-only"],
        capture_output=True,
        text=True,
        env=_environment(),
    )
    if alone.returncode == _NO_TESTS:
        return MpskitError(
            "No test has such a name.",
            hint="Give -k a part of one, e.g. mpskit test -k float16.",
        )
    said = f"{alone.stdout}{alone.stderr}" if alone.returncode else output
    return MpskitError(f"pytest ended with exit code {code}: {said.strip()}")


def _pytest_command() -> list[str]:
    suite = _suite_dir()
    return [sys.executable, "-m", "pytest", str(suite), "-c", str(suite / "pytest.ini"), "-q"]


def _run_pytest(arguments: list[str], output: IO[str], tally: _Tally) -> int:
    """Runs pytest on the suite and gives its reports to ``tally``; returns the exit code."""
    reports, write_end = os.pipe()
    process = subprocess.Popen(
        [*_pytest_command(), *arguments, f"--report-fd={write_end}"],
        stdout=output,
        stderr=output,
        pass_fds=(write_end,),
        env=_environment(),
    )
    os.close(write_end)
    try:
        with os.fdopen(reports, encoding="utf-8") as stream:
            for event in map(json.loads, stream):
                tally.take(event)
        return process.wait()
    finally:
        process.terminate()
        process.wait()


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN_ENVIRONMENT}
    # A failure's message ends with our line that reproduces it, not with torch's.
    return {**kept, "PYTORCH_PRINT_REPRO_ON_FAILURE": "0"}


def _rerun_options(backend: str, patch_set: Path | None) -> str:
    options = f" --backend {backend}" if backend != "cpu" else ""
    return options + (f" --patch-set {shlex.quote(str(patch_set))}" if patch_set else "")


def _closing_line(output: str) -> str:
    lines = [line.strip("= ") for line in output.splitlines() if line.strip("= ")]
    return lines[-1] if lines else ""


@dataclass
class _Tally:
    """Counts the events that opinfo/conftest.py describes."""

    rerun_options: str
    progress: Callable[[int, int], None] | None
    on_failure: Callable[[Failure], None] | None
    total: int = 0
    done: int = 0
    tests: dict[str, dict[str, int]] = field(default_factory=dict)
    samples: Counter[str] = field(default_factory=Counter)
    launches: Counter[str] = field(default_factory=Counter)
    worst: dict[str, WorstError] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    def take(self, event: dict[str, Any]) -> None:
        if event["event"] == "collected":
            self.total = event["tests"]
        elif event["event"] == "finished":
            self._finish(event)
        else:
            self._fail(Failure(event["where"], event["message"], "mpskit test"))
        if self.progress:
            self.progress(self.done, self.total)

    def _finish(self, event: dict[str, Any]) -> None:
        self.done += 1
        name = event["test"].rsplit("::", 1)[-1]
        counts = self.tests.setdefault(_dtype_of(name), {})
        counts[event["outcome"]] = counts.get(event["outcome"], 0) + 1
        evidence = event["evidence"] or {}
        self.samples.update(evidence.get("samples", {}))
        self.launches.update(evidence.get("launches", {}))
        for dtype, (ulp, sample) in evidence.get("worst", {}).items():
            if dtype not in self.worst or ulp > self.worst[dtype].ulp:
                self.worst[dtype] = WorstError(ulp, sample)
        if event["outcome"] == "failed":
            index = evidence.get("sample_index")
            only = "" if index is None else f"PYTORCH_OPINFO_SAMPLE_INPUT_INDEX={index} "
            command = f"{only}mpskit test -k {name}{self.rerun_options}"
            self._fail(Failure(event["test"], event["message"], command))

    def _fail(self, failure: Failure) -> None:
        self.failures.append(failure)
        if self.on_failure:
            self.on_failure(failure)


def _dtype_of(test_name: str) -> str:
    last = test_name.rsplit("_", 1)[-1]
    return last if last in _DTYPES else NO_DTYPE

"""Runs the OpInfo suite with pytest and gathers what its tests report."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import torch

from mpskit import interrupts
from mpskit.errors import MpskitError
from mpskit.verify.implementation import Implementation, compile_kernels
from mpskit.verify.log_softmax import IMPLEMENTATIONS
from mpskit.verify.plan import Planner
from mpskit.verify.reports.result import (
    Case,
    Failure,
    OpResult,
    Outcomes,
    SuiteResult,
    WorstError,
    split_host_name,
    worst_of,
)
from mpskit.verify.sources import PatchSources
from mpskit.verify.tested import sources_under_test
from opinfo.settings import Settings

if TYPE_CHECKING:
    from opinfo.definition import Definition

# Tests that have no dtype, such as those of error inputs, are counted under this name.
NO_DTYPE = "none"
DTYPES = ("float32", "float16", "bfloat16", "bool", "uint8", "int8", "int16", "int32", "int64")
# pytest's exit codes for a run that took place, whatever came out of it.
_TESTS_RAN = (0, 1)
_NO_TESTS = 5
# torch runs the sample input of this index alone.
_SAMPLE_INDEX = "PYTORCH_OPINFO_SAMPLE_INPUT_INDEX"
# What would make pytest run something else than what was asked for.
_FOREIGN_ENVIRONMENT = (
    "PYTEST_ADDOPTS",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
    "PYTEST_PLUGINS",
    _SAMPLE_INDEX,
)


@dataclass(frozen=True)
class Selection:
    """What of the suite is run, and on what.

    Attributes:
        backend: of :func:`mpskit.metal.compile_shader`.
        patch_set: mirrors the PyTorch tree; None for the package's own patch set.
        sanitize: watch every access of the kernels; a report fails the test.
        expression: pytest's ``-k``.
        ops: names of definitions; all where none is given.
        dtypes: of the tests' inputs, such as ``float16``; all where none is given.
        only: one test, ``Class::test``, or one sample input of it, ``Class::test#index``.
    """

    backend: str = "cpu"
    patch_set: Path | None = None
    sanitize: bool = False
    expression: str | None = None
    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    only: str | None = None

    @property
    def where(self) -> list[str]:
        """The options of ``mpskit test`` that say what the tests run on."""
        return [
            *(["--backend", self.backend] if self.backend != "cpu" else []),
            *(["--patch-set", str(self.patch_set)] if self.patch_set else []),
            *(["--sanitize"] if self.sanitize else []),
        ]

    @property
    def chosen(self) -> list[str]:
        """The options of ``mpskit test`` that choose a part of the suite."""
        return [
            *(["-k", self.expression] if self.expression is not None else []),
            *(part for op in self.ops for part in ("--op", op)),
            *(part for dtype in self.dtypes for part in ("--dtype", dtype)),
            *(["--only", self.only] if self.only is not None else []),
        ]

    def reproduce(self, test: str, index: int | None) -> str:
        """The command that runs a test again, on the sample input of that index alone."""
        only = test.partition("::")[2] + ("" if index is None else f"#{index}")
        return shlex.join(["mpskit", "test", "--only", only, *self.where])

    def pytest_arguments(self) -> list[str]:
        """Options that opinfo/conftest.py and pytest take."""
        test, _, _ = (self.only or "").partition("#")
        return [
            f"--backend={self.backend}",
            *([f"--patch-set={self.patch_set.resolve()}"] if self.patch_set else []),
            *(["--sanitize"] if self.sanitize else []),
            *(["-k", self.expression] if self.expression is not None else []),
            *(f"--op={op}" for op in self.ops),
            *(f"--dtype={dtype}" for dtype in self.dtypes),
            *([f"--only={test}"] if test else []),
        ]

    def environment(self) -> dict[str, str]:
        """Of the processes that run the tests."""
        kept = {
            name: value for name, value in os.environ.items() if name not in _FOREIGN_ENVIRONMENT
        }
        _, _, index = (self.only or "").partition("#")
        if index:
            kept[_SAMPLE_INDEX] = index
        # A failure's message ends with our line that reproduces it, not with torch's.
        return {**kept, "PYTORCH_PRINT_REPRO_ON_FAILURE": "0"}

    def definitions(self) -> tuple[Definition, ...]:
        """All that the suite knows of the patch set's ops; brings PyTorch's OpInfo entries."""
        from opinfo.definitions import definitions_in

        return definitions_in(self._settings.definitions_dir)

    @property
    def brings_definitions(self) -> bool:
        """Whether the patch set has ops of its own in place of ours."""
        return self._settings.definitions_dir is not None

    @property
    def _settings(self) -> Settings:
        folder = self.patch_set.resolve() if self.patch_set else None
        return Settings(self.backend, folder, self.sanitize, self.ops)

    def check(self) -> None:
        """Refuses what names nothing, before anything is compiled.

        Raises:
            MpskitError: an op or dtype that the suite does not know, or a sanitizer that the
                backend has not.
        """
        _refuse_unknown("dtype", self.dtypes, DTYPES)
        if self.ops:
            _refuse_unknown("op", self.ops, [each.name for each in self.definitions()])
        if self.sanitize and self.backend != "cpu":
            raise MpskitError(
                f"The {self.backend} backend has no sanitizer.",
                hint="Leave --sanitize or --backend out: the cpu backend has one.",
            )
        _, mark, index = (self.only or "").partition("#")
        if mark and not index.isdecimal():
            raise MpskitError(
                f"--only {self.only}: behind # stands the index of a sample input.",
                hint="Copy it from the line that a failure is printed with.",
            )


_EVERYTHING = Selection()


def run_suite(
    selection: Selection = _EVERYTHING,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    on_failure: Callable[[Failure], None] | None = None,
    fail_fast: bool = False,
) -> SuiteResult:
    """Runs the tests in processes of their own, so that a kernel that crashes fails one test.

    Args:
        workers: test processes; one for each core by default.
        progress: called with tests done and tests in all.
        on_failure: called when a test has failed.
        fail_fast: ends the run at the first failure.

    Raises:
        MpskitError: nothing could be run; a kernel that does not compile, or no such test.
    """
    begin = time.perf_counter()
    selection.check()
    kernels = _compile(selection)
    tally = _Tally(selection, progress, on_failure)
    arguments = [*selection.pytest_arguments(), *(["--maxfail=1"] if fail_fast else [])]
    spread = [f"--numprocesses={workers or _cores()}", "--dist=worksteal"]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        code = _run_pytest([*arguments, *spread], selection.environment(), output, tally)
        output.seek(0)
        text = output.read()
    if code not in _TESTS_RAN and not tally.failures:
        raise _no_run(code, selection, arguments, text)
    return SuiteResult(
        backend=selection.backend,
        seconds=time.perf_counter() - begin,
        tests={dtype: Outcomes(**counts) for dtype, counts in sorted(tally.tests.items())},
        ops={name: seen.result() for name, seen in sorted(tally.ops.items())},
        launches=dict(sorted(tally.launches.items())),
        kernels=kernels,
        failures=tuple(tally.failures),
        closing_line=_closing_line(text),
        chosen=tuple(selection.chosen),
        sanitize=selection.sanitize,
        patch_files=sources_under_test(selection.patch_set),
        torch=torch.__version__,
        date=datetime.now(timezone.utc).date().isoformat(),
        cases=tuple(tally.cases),
    )


def _refuse_unknown(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise MpskitError(f"No {what} {name} is tested.", hint=f"Known: {', '.join(known)}.")


def _compile(selection: Selection) -> tuple[str, ...]:
    """Fills the caches of compiled code before the workers need it; returns the kernels' names."""
    names = set()
    for implementation in _implementations(selection):
        library = compile_kernels(
            implementation,
            selection.backend,
            patch_dir=selection.patch_set,
            sanitize=selection.sanitize,
        )
        names |= {split_host_name(name)[0] for name in dir(library)}
    return tuple(sorted(names))


def _implementations(selection: Selection) -> Iterable[Implementation]:
    """Those of the ops that a patch set brings, or of mpskit's own.

    PyTorch's OpInfo data, which take seconds to import, are needed only for the former.
    """
    if not selection.brings_definitions:
        Planner(PatchSources.find(selection.patch_set))
        return IMPLEMENTATIONS
    return dict.fromkeys(each for item in selection.definitions() for each in item.implementations)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _suite_dir() -> Path:
    spec = importlib.util.find_spec("opinfo")
    if spec is None or spec.origin is None:
        raise MpskitError("The opinfo package is missing.", hint="Install mpskit again.")
    return Path(spec.origin).parent


def _no_run(code: int, selection: Selection, arguments: list[str], output: str) -> MpskitError:
    """Why no test was run: pytest-xdist's workers do not say what they died of."""
    alone = subprocess.run(
        [*_pytest_command(), *arguments, "--collect-only"],
        capture_output=True,
        text=True,
        env=selection.environment(),
    )
    if alone.returncode == _NO_TESTS:
        chosen = shlex.join(selection.chosen)
        return MpskitError(
            f"There is no test of that name: {chosen}" if chosen else "The suite has no test.",
            hint="Give -k a part of one, e.g. mpskit test -k float16.",
        )
    said = f"{alone.stdout}{alone.stderr}" if alone.returncode else output
    return MpskitError(f"pytest ended with exit code {code}: {said.strip()}")


def _pytest_command() -> list[str]:
    suite = _suite_dir()
    return [sys.executable, "-m", "pytest", str(suite), "-c", str(suite / "pytest.ini"), "-q"]


def _run_pytest(
    arguments: list[str], environment: dict[str, str], output: IO[str], tally: _Tally
) -> int:
    """Runs pytest on the suite and gives its reports to ``tally``; returns the exit code."""
    reports, write_end = os.pipe()
    with ExitStack() as until_it_is_watched:
        until_it_is_watched.enter_context(interrupts.held())
        process = subprocess.Popen(
            [*_pytest_command(), *arguments, f"--report-fd={write_end}"],
            stdout=output,
            stderr=output,
            pass_fds=(write_end,),
            env=environment,
            start_new_session=True,
        )
        os.close(write_end)
        with _ended(process), os.fdopen(reports, encoding="utf-8") as stream:
            until_it_is_watched.close()
            for event in map(json.loads, stream):
                tally.take(event)
            return process.wait()


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ends the process and its workers where it is left early, as by an interrupt.

    They are a group of their own, so that an interrupt reaches them through here alone.
    """
    try:
        yield
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _closing_line(output: str) -> str:
    lines = [line.strip("= ") for line in output.splitlines() if line.strip("= ")]
    return lines[-1] if lines else ""


@dataclass
class _OpTally:
    """Adds up `opinfo.evidence.OpEvidence` of one op."""

    samples: Counter[str] = field(default_factory=Counter)
    input_layouts: Counter[str] = field(default_factory=Counter)
    output_layouts: Counter[str] = field(default_factory=Counter)
    launches: Counter[str] = field(default_factory=Counter)
    worst: dict[str, WorstError] = field(default_factory=dict)
    cpu_worst: dict[str, WorstError] = field(default_factory=dict)

    def take(self, evidence: dict[str, Any], reproduce: Callable[[int | None], str]) -> None:
        """Adds what a test has seen; ``reproduce`` tells how to run a sample of it again."""
        for name in ("samples", "input_layouts", "output_layouts", "launches"):
            getattr(self, name).update(evidence[name])
        for name in ("worst", "cpu_worst"):
            found = {
                dtype: WorstError(error["ulp"], error["sample"], reproduce(error["index"]))
                for dtype, error in evidence[name].items()
            }
            setattr(self, name, worst_of([getattr(self, name), found]))

    def result(self) -> OpResult:
        counts = ("samples", "input_layouts", "output_layouts", "launches")
        sorted_counts = {name: dict(sorted(getattr(self, name).items())) for name in counts}
        return OpResult(**sorted_counts, worst=self.worst, cpu_worst=self.cpu_worst)


@dataclass
class _Tally:
    """Counts the events that opinfo/conftest.py describes."""

    selection: Selection
    progress: Callable[[int, int], None] | None
    on_failure: Callable[[Failure], None] | None
    total: int = 0
    tests: dict[str, dict[str, int]] = field(default_factory=dict)
    ops: dict[str, _OpTally] = field(default_factory=dict)
    launches: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)

    def take(self, event: dict[str, Any]) -> None:
        if event["event"] == "collected":
            self.total = event["tests"]
        elif event["event"] == "finished":
            self._finish(event)
        else:
            again = shlex.join(["mpskit", "test", *self.selection.where])
            self._fail(Failure(event["where"], event["message"], again))
        if self.progress:
            self.progress(len(self.cases), self.total)

    def _finish(self, event: dict[str, Any]) -> None:
        test, outcome = event["test"], event["outcome"]
        reproduce = partial(self.selection.reproduce, test)
        self.cases.append(Case(test, outcome, event["seconds"], event["message"]))
        counts = self.tests.setdefault(_dtype_of(test), {})
        counts[outcome] = counts.get(outcome, 0) + 1
        evidence = event["evidence"] or {"ops": {}, "launches": {}, "sample_index": None}
        self.launches.update(evidence["launches"])
        for op, seen in evidence["ops"].items():
            self.ops.setdefault(op, _OpTally()).take(seen, reproduce)
        if outcome == "failed":
            again = reproduce(evidence["sample_index"])
            self._fail(Failure(test, event["message"], again))

    def _fail(self, failure: Failure) -> None:
        self.failures.append(failure)
        if self.on_failure:
            self.on_failure(failure)


def _dtype_of(test: str) -> str:
    last = test.rsplit("_", 1)[-1]
    return last if last in DTYPES else NO_DTYPE

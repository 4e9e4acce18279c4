#!/usr/bin/env python3
"""Checks that the OpInfo suite catches faults: each mutant of the patch set must fail a test.

Every fault in mutations*.toml is made in a copy of aten_patch by replacing text that must occur
there exactly once, and the suite runs on the copy, up to the first failure. Prints a line a mutant
with the test that killed it, and exits 1 if one survives. A mutant that does not compile is an
error.

    ci/mutation_check.py                    all mutants
    ci/mutation_check.py missing_barrier    those whose names begin so
    ci/mutation_check.py --list
    ci/mutation_check.py --markdown docs/mutations.md

Mutants are compiled into a cache of their own, which goes when the check ends. Each runs in a child
of a process that has torch and the suite imported already.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

import click
import pytest

import opinfo.definitions  # and what that imports, for all children
from mpskit.errors import MpskitError
from mpskit.verify.implementation import compile_kernels
from mpskit.verify.log_softmax import IMPLEMENTATIONS
from mpskit.verify.plan import BackwardPlanner, Planner
from mpskit.verify.sources import PatchSources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
PATCH_SET = HERE.parent / "aten_patch"
SUITE = Path(opinfo.__file__).parent
# Names of dtypes in tests, and in the kernels.
_METAL_DTYPES = {"float32": "float", "float16": "half", "bfloat16": "bfloat"}


@dataclass(frozen=True)
class Mutation:
    """A deliberate fault.

    Attributes:
        name: one word.
        why: what goes wrong, in a line.
        file: in the patch set.
        replace: pairs of the text to find and the text to put there.
        tests: pytest's ``-k`` for those that are likely to notice.
    """

    name: str
    why: str
    file: str
    replace: tuple[tuple[str, str], ...]
    tests: str

    def apply(self, patch_set: Path) -> None:
        """Makes the fault in a copy of the patch set.

        Raises:
            MpskitError: a text to replace does not occur exactly once.
        """
        path = patch_set / self.file
        text = path.read_text()
        for find, replacement in self.replace:
            count = text.count(find)
            if count != 1:
                raise MpskitError(
                    f"Mutation {self.name}: {find!r} occurs {count} times in {self.file}.",
                    hint="Bring mutations.toml up to date with the patch set.",
                )
            text = text.replace(find, replacement)
        path.write_text(text)


@dataclass(frozen=True)
class Failure:
    """A failed test and the first line of what it said."""

    test: str
    message: str


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant; ``killed_by`` is None for one that survived."""

    mutation: Mutation
    killed_by: Failure | None
    seconds: float


class FirstFailure:
    """A pytest plugin that keeps the first failure."""

    failure: Failure | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failure is None:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = str(crash.message if crash else report.longrepr).strip().splitlines()[0]
            test = report.nodeid.rsplit("::", 1)[-1]
            self.failure = Failure(test, message.removeprefix("AssertionError: "))


def load_mutations() -> tuple[Mutation, ...]:
    """Those of all mutations*.toml beside this script."""
    return tuple(m for path in sorted(HERE.glob("mutations*.toml")) for m in _load(path))


def _load(path: Path) -> tuple[Mutation, ...]:
    data = tomllib.loads(path.read_text())
    files = data["files"]
    return tuple(
        Mutation(
            entry["name"],
            entry["why"],
            files[entry["file"]],
            tuple((find, replacement) for find, replacement in entry["replace"]),
            entry["tests"],
        )
        for entry in data["mutation"]
    )


def judge(mutation: Mutation, directory: Path) -> Failure | None:
    """Makes the mutant in an empty directory, and runs its tests up to the first failure."""
    copy = directory / "aten_patch"
    shutil.copytree(PATCH_SET, copy)
    mutation.apply(copy)
    for kernels in copy.rglob("*.metal"):
        kernels.write_text(_of_tested_dtypes(kernels.read_text(), mutation.tests))
    return first_failure(mutation.tests, copy)


def _of_tested_dtypes(source: str, tests: str) -> str:
    """Kernels of the dtypes that ``tests`` names, if any: most of the time goes into compiling."""
    named = re.findall(r"\bb?float\d+\b", tests)  # parts of names to pytest: float16 is both
    kept = [metal for dtype, metal in _METAL_DTYPES.items() if any(part in dtype for part in named)]
    if not kept:
        return source
    return re.sub(rf"^REGISTER_\w+\((?!{'|'.join(kept)}\b)\w+, .*\n", "", source, flags=re.M)


def judge_all(mutations: Sequence[Mutation], at_a_time: int) -> Iterator[Verdict]:
    """Each in a process that its fault may bring down."""
    waiting = list(reversed(mutations))
    running: dict[Connection, Trial] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_a_time:
                trial = Trial(waiting.pop())
                running[trial.answer] = trial
            for answer in wait(list(running)):
                yield running.pop(answer).verdict()
    finally:
        for trial in running.values():
            trial.stop()


class Trial:
    """A mutant that is being judged, in a child of this process."""

    def __init__(self, mutation: Mutation) -> None:
        self._mutation = mutation
        self._begin = time.perf_counter()
        self._directory = tempfile.TemporaryDirectory(prefix=f"mutant-{mutation.name}-")
        context = multiprocessing.get_context("fork")
        self.answer, sender = context.Pipe(duplex=False)
        self._child = context.Process(target=self._send_judgement, args=(sender,))
        self._child.start()
        sender.close()

    def verdict(self) -> Verdict:
        """What the child has answered.

        Raises:
            MpskitError: the mutant could not be made or compiled, or no test was run.
        """
        try:
            outcome = self.answer.recv()
        except EOFError:
            self._child.join()
            outcome = Failure("the process", f"ended with exit code {self._child.exitcode}")
        self.stop()
        if isinstance(outcome, str):
            raise MpskitError(f"{self._mutation.name}: {outcome}")
        return Verdict(self._mutation, outcome, time.perf_counter() - self._begin)

    def stop(self) -> None:
        self._child.terminate()
        self._child.join()
        self._directory.cleanup()

    def _send_judgement(self, sender: Connection) -> None:
        with (
            Path(os.devnull).open("w") as nowhere,
            redirect_stdout(nowhere),
            redirect_stderr(nowhere),
        ):
            try:
                sender.send(judge(self._mutation, Path(self._directory.name)))
            except MpskitError as error:
                sender.send(str(error))


def first_failure(expression: str, patch_set: Path) -> Failure | None:
    """Runs the suite's tests that ``-k expression`` chooses, up to the first that fails.

    Raises:
        MpskitError: the patch set does not compile, or no test was run.
    """
    for implementation in IMPLEMENTATIONS:
        compile_kernels(implementation, patch_dir=patch_set)
    sources = PatchSources.find(patch_set)
    Planner(sources)
    BackwardPlanner(sources)
    watch = FirstFailure()
    options = ["-c", str(SUITE / "pytest.ini"), "-k", expression, f"--patch-set={patch_set}", "-x"]
    code = pytest.main([str(SUITE), *options], plugins=[watch])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise MpskitError(f"pytest -k '{expression}' ended with exit code {code}")
    return watch.failure


def _show(verdict: Verdict) -> None:
    name = verdict.mutation.name
    if verdict.killed_by is None:
        click.echo(f"SURVIVED {name}, {verdict.mutation.why} ({verdict.seconds:.0f} s)")
        return
    test, message = verdict.killed_by.test, verdict.killed_by.message
    click.echo(f"killed   {name} by {test} ({verdict.seconds:.0f} s)\n           {message}")


def markdown(verdicts: Sequence[Verdict]) -> str:
    """A table of the mutants and the tests that killed them."""
    killed = [verdict for verdict in verdicts if verdict.killed_by]
    rows = [
        f"| `{v.mutation.name}` | {v.mutation.why} | {Path(v.mutation.file).name} | "
        + (f"`{v.killed_by.test}` |" if v.killed_by else "**survived** |")
        for v in verdicts
    ]
    return "\n".join(
        (
            "# Faults that the suite catches",
            "",
            "Each is made in a copy of the patch set, one at a time, and must fail a test of the",
            "OpInfo suite. Made by `ci/mutation_check.py --markdown`.",
            "",
            f"{len(killed)} of {len(verdicts)} mutants killed.",
            "",
            "| mutant | what goes wrong | in | killed by |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
        )
    )


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--list", "only_list", is_flag=True, help="Name the mutants and stop.")
@click.option("--markdown", "table", type=click.Path(path_type=Path), help="Write a table too.")
@click.option("--jobs", default=os.cpu_count() or 1, help="Mutants at a time.", show_default=True)
def main(names: tuple[str, ...], only_list: bool, table: Path | None, jobs: int) -> None:
    mutations = [m for m in load_mutations() if not names or m.name.startswith(names)]
    if only_list:
        for mutation in mutations:
            click.echo(f"{mutation.name}: {mutation.why}")
        return
    if not mutations:
        raise click.UsageError(f"No mutation's name begins with {' or '.join(names)}.")
    try:
        with tempfile.TemporaryDirectory(prefix="mutants-") as cache:
            os.environ["MPSKIT_CACHE_DIR"] = cache
            verdicts = []
            for verdict in judge_all(mutations, jobs):
                _show(verdict)
                verdicts.append(verdict)
    except MpskitError as error:
        raise click.ClickException(str(error)) from error
    if table:
        table.write_text(markdown(verdicts))
    survived = [verdict for verdict in verdicts if verdict.killed_by is None]
    click.echo(f"{len(verdicts) - len(survived)} of {len(verdicts)} mutants killed")
    sys.exit(1 if survived else 0)


if __name__ == "__main__":
    main()

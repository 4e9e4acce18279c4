#!/usr/bin/env python3
"""Checks that the OpInfo suite catches faults: each mutant of the patch set must fail a test.

Every fault in mutations*.toml is made in a copy of aten_patch by replacing text that must occur
there exactly once, and the suite runs on the copy. Prints a line a mutant with the test that
killed it, and exits 1 if one survives.

    ci/mutation_check.py                    all mutants
    ci/mutation_check.py missing_barrier    those whose names begin so
    ci/mutation_check.py --list
    ci/mutation_check.py --markdown docs/mutations.md

Mutants are compiled into a cache of their own, which goes when the check ends.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click

from mpskit.errors import MpskitError
from mpskit.verify.reports.result import Failure
from mpskit.verify.suite import Selection, run_suite

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
PATCH_SET = HERE.parent / "aten_patch"


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
class Verdict:
    """What became of a mutant; ``killed_by`` is None for one that survived."""

    mutation: Mutation
    killed_by: Failure | None
    seconds: float


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


def judge(mutation: Mutation) -> Verdict:
    """Runs the mutation's tests on a mutated copy of the patch set, up to the first failure."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix=f"mutant-{mutation.name}-") as directory:
        copy = Path(directory) / "aten_patch"
        shutil.copytree(PATCH_SET, copy)
        mutation.apply(copy)
        selection = Selection(expression=mutation.tests, patch_set=copy)
        result = run_suite(selection, workers=1, fail_fast=True)
    killed_by = result.failures[0] if result.failures else None
    return Verdict(mutation, killed_by, time.perf_counter() - begin)


def judge_all(mutations: Sequence[Mutation]) -> list[Verdict]:
    """One mutant for each core at a time; shows each verdict, in order."""
    verdicts = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for verdict in pool.map(judge, mutations):
            _show(verdict)
            verdicts.append(verdict)
    return verdicts


def _show(verdict: Verdict) -> None:
    name = verdict.mutation.name
    if verdict.killed_by is None:
        click.echo(f"SURVIVED {name}, {verdict.mutation.why} ({verdict.seconds:.0f} s)")
        return
    test, message = _cause_of_death(verdict.killed_by)
    click.echo(f"killed   {name} by {test} ({verdict.seconds:.0f} s)\n           {message}")


def _cause_of_death(failure: Failure) -> tuple[str, str]:
    """The test's name, and the first line of what it said."""
    message = failure.message.strip().splitlines()[0].removeprefix("AssertionError: ")
    return failure.test.rsplit("::", 1)[-1], message


def markdown(verdicts: Sequence[Verdict]) -> str:
    """A table of the mutants and the tests that killed them."""
    killed = [verdict for verdict in verdicts if verdict.killed_by]
    rows = [
        f"| `{v.mutation.name}` | {v.mutation.why} | {Path(v.mutation.file).name} | "
        + (f"`{_cause_of_death(v.killed_by)[0]}` |" if v.killed_by else "**survived** |")
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
def main(names: tuple[str, ...], only_list: bool, table: Path | None) -> None:
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
            verdicts = judge_all(mutations)
    except MpskitError as error:
        raise click.ClickException(str(error)) from error
    if table:
        table.write_text(markdown(verdicts))
    survived = [verdict for verdict in verdicts if verdict.killed_by is None]
    click.echo(f"{len(verdicts) - len(survived)} of {len(verdicts)} mutants killed")
    sys.exit(1 if survived else 0)


if __name__ == "__main__":
    main()

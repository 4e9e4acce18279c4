"""``mpskit test``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import JustifyMethod
from rich.table import Table as RichTable
from rich.text import Text

from mpskit.cli.options import json_option, patch_set_option
from mpskit.cli.output import console, progress, show, show_json
from mpskit.metal import BACKENDS

if TYPE_CHECKING:
    from mpskit.verify.reports.result import Failure, SuiteResult
    from mpskit.verify.reports.tables import Table

_FILE = click.Path(path_type=Path)


@click.command("test")
@click.option("--backend", type=click.Choice(BACKENDS), default="cpu", show_default=True)
@click.option("--op", "ops", metavar="NAME", multiple=True,
              help="Only tests of this op; may be repeated.")  # fmt: skip
@click.option("--dtype", "dtypes", metavar="NAME", multiple=True,
              help="Only tests of this dtype, e.g. float16; may be repeated.")  # fmt: skip
@click.option(
    "-k", "expression", metavar="EXPR", help="Run the tests whose names match, as pytest."
)
@click.option("--only", metavar="CLASS::TEST[#SAMPLE]",
              help="One test, or one sample of it: what a failure is printed with.")  # fmt: skip
@click.option("--sanitize", is_flag=True,
              help="Watch every access of the kernels; a report fails the test.")  # fmt: skip
@click.option(
    "-n",
    "workers",
    type=click.IntRange(min=1),
    metavar="WORKERS",
    help="Test processes; one for each core by default.",
)
@click.option("--report", "reports", type=_FILE, multiple=True, metavar="FILE",
              help="Write a report, as a web page, Markdown or JSON, as FILE ends in .html, .md or "
              ".json; may be repeated.")  # fmt: skip
@click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit's XML, for CI systems.")
@patch_set_option
@json_option
def command(
    backend: str,
    ops: tuple[str, ...],
    dtypes: tuple[str, ...],
    expression: str | None,
    only: str | None,
    sanitize: bool,
    workers: int | None,
    reports: tuple[Path, ...],
    junit: Path | None,
    patch_set: Path | None,
    as_json: bool,
) -> None:
    """Run PyTorch's OpInfo data and our samples through the patch's kernels.

    Every result is compared with a float64 reference. The exit code is 0 only if all tests passed
    and, unless options chose some, every kernel of the patch set was launched.
    """
    from mpskit.verify import reports as reporting
    from mpskit.verify.suite import Selection, run_suite

    for file in reports:
        reporting.check_report_file(file)
    if junit:
        reporting.check_writable(junit)
    selection = Selection(backend, patch_set, sanitize, expression, ops, dtypes, only)
    with progress("tests") as update:
        result = run_suite(selection, workers=workers, progress=update, on_failure=_announce)
    for file in reports:
        reporting.write_report(result, file)
    if junit:
        reporting.write_junit(result, junit)
    if as_json:
        show_json(result.to_json())
    else:
        show_result(result)
    sys.exit(0 if result.ok else 1)


def show_result(result: SuiteResult) -> None:
    """Prints a run's tables, its failures, and pytest's own count as the last line."""
    from mpskit.verify.reports.tables import accuracy_table, launches_table, tests_table

    show(f"OpInfo suite, {result.backend} backend, {result.seconds:.1f} s", "bold")
    _print(tests_table(result))
    for name, op in result.ops.items():
        _print(accuracy_table(op), name)
    _print(launches_table(result.launches, result.kernels))
    for failure in result.failures:
        show(f"FAILED {failure.test}", "red")
        show(f"  {failure.message.strip()}")
        show(f"  again: {failure.reproduce}", "bold")
    if result.never_launched and not result.chosen:
        show(f"never launched: {', '.join(result.never_launched)}", "red")
    show(result.closing_line, "green" if result.ok else "red")


def _announce(failure: Failure) -> None:
    """Says so while the others still run; the message comes with the summary."""
    click.echo(f"failed: {failure.test}", err=True)


def _print(table: Table, of: str = "") -> None:
    printed = RichTable(title=f"{of}: {table.title}" if of else table.title)
    for column, heading in enumerate(table.head):
        justify: JustifyMethod = "left" if column in table.words else "right"
        printed.add_column(heading, justify=justify, overflow="fold", no_wrap=column == 0)
    for row in table.rows:
        printed.add_row(*map(Text, row))
    console().print(printed)

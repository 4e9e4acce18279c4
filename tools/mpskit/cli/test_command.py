"""``mpskit test``."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from mpskit.cli.options import json_option, patch_set_option
from mpskit.cli.output import console, progress, show, show_json
from mpskit.metal import BACKENDS

if TYPE_CHECKING:
    from mpskit.verify.suite import Failure, SuiteResult

# As mpskit.verify.plan has them, without importing torch for --help.
_METAL_DTYPES = {"float": "float32", "half": "float16", "bfloat": "bfloat16"}


@click.command("test")
@click.option("--backend", type=click.Choice(BACKENDS), default="cpu", show_default=True)
@click.option(
    "-k", "expression", metavar="EXPR", help="Run the tests whose names match, as pytest."
)
@click.option(
    "-n",
    "workers",
    type=click.IntRange(min=1),
    metavar="WORKERS",
    help="Test processes; one for each core by default.",
)
@patch_set_option
@json_option
def command(
    backend: str, expression: str | None, workers: int | None, patch_set: Path | None, as_json: bool
) -> None:
    """Run PyTorch's OpInfo data and our samples through the patch's kernels.

    Every result is compared with a float64 reference. The exit code is 0 only if all tests passed
    and, unless -k chose some, every kernel of the patch set was launched.
    """
    from mpskit.verify.suite import run_suite

    with progress("tests") as update:
        result = run_suite(
            backend, expression, workers, patch_set, progress=update, on_failure=_announce
        )
    if as_json:
        show_json(result.to_json())
    else:
        show_result(result)
    sys.exit(0 if result.ok else 1)


def show_result(result: SuiteResult) -> None:
    """Prints a run's tables, its failures, and pytest's own count as the last line."""
    out = console()
    out.print(_tests_table(result))
    out.print(_launches_table(result))
    for failure in result.failures:
        show(f"FAILED {failure.test}", "red")
        show(f"  {failure.message.strip()}")
        show(f"  again: {failure.reproduce}", "bold")
    if result.expression is None and result.never_launched:
        show(f"never launched: {', '.join(result.never_launched)}", "red")
    show(result.closing_line, "green" if result.ok else "red")


def _announce(failure: Failure) -> None:
    """Says so while the others still run; the message comes with the summary."""
    click.echo(f"failed: {failure.test}", err=True)


def _tests_table(result: SuiteResult) -> Table:
    table = Table(title=f"OpInfo suite, {result.backend} backend, {result.seconds:.1f} s")
    table.add_column("dtype")
    for heading in ("passed", "failed", "skipped", "samples", "worst ULP"):
        table.add_column(heading, justify="right")
    table.add_column("in sample", overflow="fold")
    others = set(result.tests) - set(_METAL_DTYPES.values())
    for label, dtypes in (
        *((dtype, {dtype}) for dtype in _METAL_DTYPES.values()),
        ("other", others),
    ):
        tests = [result.tests[dtype] for dtype in dtypes if dtype in result.tests]
        worst = result.worst.get(label)
        table.add_row(
            label,
            *(
                str(sum(getattr(t, count) for t in tests))
                for count in ("passed", "failed", "skipped")
            ),
            str(result.samples.get(label, "")),
            f"{worst.ulp:.2f}" if worst else "",
            Text(worst.sample if worst else ""),
        )
    return table


def _launches_table(result: SuiteResult) -> Table:
    """Kernels down; dtypes, then index widths across."""
    from mpskit.verify.suite import split_host_name

    counts: Counter[tuple[str, str]] = Counter()
    for host_name, count in result.launches.items():
        kernel, dtype, index = split_host_name(host_name)
        counts[kernel, _METAL_DTYPES[dtype]] += count
        counts[kernel, index] += count
    columns = (*_METAL_DTYPES.values(), "u32", "u64")
    table = Table(title="Launches")
    table.add_column("kernel", no_wrap=True)
    for column in (*columns, "total"):
        table.add_column(column, justify="right")
    for kernel, total in result.launches_by_kernel.items():
        table.add_row(kernel, *(str(counts[kernel, column]) for column in columns), str(total))
    return table

"""``mpskit new``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpskit.cli.options import json_option
from mpskit.cli.output import show, show_json

if TYPE_CHECKING:
    from mpskit.scaffolding import Scaffold

# As mpskit.scaffolding.KIND_NAMES, without importing it for --help.
KINDS = ("elementwise", "row-reduction", "reduction-with-backward")


@click.command("new")
@click.argument("name")
@click.argument("directory", type=click.Path(path_type=Path), required=False)
@click.option("--op", "op", metavar="aten::OP", required=True, help="The op that gets kernels.")
@click.option(
    "--kind", type=click.Choice(KINDS), help="What the kernels are; told from the op by default."
)
@click.option(
    "--formula",
    metavar="METAL",
    help="What the kernels compute, a Metal expression of the float x: the result of an "
    "elementwise op, or what a row reduction sums. For ops that mpskit knows, it has one.",
)
@click.option(
    "--finish",
    metavar="METAL",
    help="The result of a row reduction, an expression of the float sum; `sum` by default.",
)
@json_option
def command(
    name: str,
    directory: Path | None,
    op: str,
    kind: str | None,
    formula: str | None,
    finish: str | None,
    as_json: bool,
) -> None:
    """Make DIRECTORY (./NAME by default), a patch set that gives an op its first Metal kernels.

    Kernels, plan, host code, series and tests work as they are; NAME is what the kernels are
    called. Every command that reads a patch set takes it with --patch-set DIRECTORY.

    \b
    mpskit new log_ndtr --op aten::special_log_ndtr
    mpskit new lse --op aten::logsumexp --kind row-reduction
    """
    if finish and not formula:
        raise click.UsageError("--finish goes with --formula.")

    from mpskit.scaffolding import Formula, make_scaffold

    given = Formula(formula, finish or "sum") if formula else None
    made = make_scaffold(name, op, directory or Path(name), kind=kind, formula=given)
    if as_json:
        show_json(
            {
                "directory": str(made.directory),
                "op": made.target.op.name,
                "kind": made.target.kind,
                "files": list(made.files),
            }
        )
    else:
        _show(made, directory or Path(name))


def _show(made: Scaffold, directory: Path) -> None:
    show(f"{directory}: {made.target.kind} kernels for {made.target.op.name}", "green")
    for path in made.files:
        show(f"  {path}")
    show(f"  next: mpskit test --patch-set {directory}", "dim")

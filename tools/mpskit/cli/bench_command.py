"""``mpskit bench``."""

from __future__ import annotations

from pathlib import Path

import click

from mpskit.cli.options import json_option, patch_set_option
from mpskit.cli.output import console, progress, show, show_json


@click.command("bench")
@click.option(
    "--backend",
    type=click.Choice(["cpu", "cuda", "mps"]),
    default="cpu",
    show_default=True,
    help="Whose device the kernels run on.",
)
@click.option("--op", "name", default="log_softmax", show_default=True, metavar="OP",
              help="log_softmax or log_softmax_backward.")  # fmt: skip
@click.option(
    "--workloads",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML file of what to run; a built-in list by default.",
)
@click.option(
    "--dtype", type=click.Choice(["float32", "float16", "bfloat16"]), help="Run all in it."
)
@click.option("-k", "expression", metavar="TEXT", help="Only workloads whose name contains TEXT.")
@click.option("--accuracy", is_flag=True, help="Also compare the results with float64.")
@click.option("--markdown", is_flag=True, help="Print the table of a pull request.")
@click.option("--plot", "plot_file", type=click.Path(path_type=Path), metavar="FILE.png",
              help="Draw the share of a copy's speed against row length.")  # fmt: skip
@patch_set_option
@json_option
def command(
    backend: str,
    name: str,
    workloads: Path | None,
    dtype: str | None,
    expression: str | None,
    accuracy: bool,
    markdown: bool,
    plot_file: Path | None,
    patch_set: Path | None,
    as_json: bool,
) -> None:
    """Measure the patch's kernels beside torch's op, torch.compile and a three-read design.

    Each workload's time stands next to the least time in which the device moves the same bytes,
    which is the limit for an op that reads and writes each element once.
    """
    from mpskit.verify.benchmarks import report as reporting
    from mpskit.verify.benchmarks.ops import find_op
    from mpskit.verify.benchmarks.run import run_benchmark
    from mpskit.verify.benchmarks.workloads import load_workloads, select

    op = find_op(name)
    chosen = select(load_workloads(workloads), dtype=dtype, text=expression)
    with progress("workloads") as update:
        report = run_benchmark(
            chosen, backend=backend, op=op, patch_dir=patch_set, accuracy=accuracy, progress=update
        )
    if plot_file:
        reporting.plot(report, plot_file)
    if as_json:
        show_json(report.to_json())
        return
    if markdown:
        click.echo(reporting.pull_request_table(report))
    else:
        console().print(reporting.terminal_table(report))
        for line in reporting.summary(report):
            show(line)
    if accuracy:
        click.echo(reporting.accuracy_table(report))

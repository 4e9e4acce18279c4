"""A benchmark's figures for people: a table in the terminal, Markdown for a PR, a plot."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.table import Table

from mpskit.errors import MpskitError
from mpskit.markdown import markdown_table
from mpskit.verify.benchmarks.run import BASELINES, OURS, TORCH, Measurement, Report

_DTYPE_NAMES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


def terminal_table(report: Report) -> Table:
    """Every workload with all contenders; speed-ups are of the kernels over the baseline."""
    table = Table(title=f"{report.op} on {report.device}, torch {report.torch_version}")
    table.add_column("workload", no_wrap=True)
    table.add_column("kernels µs", justify="right")
    table.add_column("spread", justify="right")
    table.add_column("of copy", justify="right")
    for baseline in BASELINES:
        table.add_column(f"vs {baseline}", justify="right")
    for m in report.measurements:
        ours = m.timings[OURS]
        table.add_row(
            m.workload.name,
            f"{ours.median:.1f}",
            f"{100 * ours.spread:.0f} %",
            f"{m.share_of_limit():.2f}",
            *(_ratio(m.speed_up(baseline)) for baseline in BASELINES),
        )
    return table


def summary(report: Report) -> list[str]:
    """Means over the run, a sentence each."""
    lines = []
    for baseline in BASELINES:
        if any(baseline in m.timings for m in report.measurements):
            line = f"{report.mean_speed_up(baseline):.2f}x {baseline} (geometric mean)"
            if any(m.workload.is_memory_bound for m in report.measurements):
                bound_mean = report.mean_speed_up(baseline, memory_bound_only=True)
                line += f", {bound_mean:.2f}x where memory bounds it"
            lines.append(line)
    bound = [m.share_of_limit() for m in report.measurements if m.workload.is_memory_bound]
    if bound:
        lines.append(f"at least {min(bound):.2f} of the speed of memory where that bounds it")
    failures = {(name, why) for m in report.measurements for name, why in m.failures.items()}
    return lines + [f"{name} did not run: {why}" for name, why in sorted(failures)]


def pull_request_table(report: Report, baseline: str = TORCH) -> str:
    """Markdown as pull requests to PyTorch show it; "before" is the baseline."""
    rows = [
        (
            f"`{'x'.join(map(str, m.workload.shape))}`",
            _DTYPE_NAMES[m.workload.dtype],
            m.workload.dim,
            m.workload.layout.replace("_", " "),
            f"{m.timings[baseline].median:.1f}",
            f"{m.timings[OURS].median:.1f}",
            f"**{m.speed_up(baseline):.3f}x**",
            m.workload.model or "",
        )
        for m in sorted(_ran(report, baseline), key=lambda m: -(m.speed_up(baseline) or 0))
    ]
    head = ("Shape", "Dtype", "Dim", "Layout", "Before (us)", "After (us)", "Speedup", "Model")
    origin = f"{report.device}, torch {report.torch_version}, {report.date}: `{report.command}`"
    return f"{markdown_table(head, rows, left=(0, 1, 3, 7))}\n\n{origin}\n"


def accuracy_table(report: Report) -> str:
    """Markdown: largest and mean error in ULP against float64, by workload and implementation."""
    names = list(dict.fromkeys(name for m in report.measurements for name in m.errors))
    rows = [
        (
            m.workload.name,
            *(f"{m.errors[name].max_ulp:.2f} / {m.errors[name].mean_ulp:.3f}" for name in names),
        )
        for m in report.measurements
        if m.errors
    ]
    return markdown_table(("Workload", *(f"{name}, max / mean ULP" for name in names)), rows)


def plot(report: Report, file: Path) -> None:
    """Share of a copy's speed against row length, a PNG.

    Raises:
        MpskitError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MpskitError(
            "A plot needs matplotlib.", hint="Install it: pip install 'mpskit[plot]'"
        ) from None
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for name, marker in ((OURS, "o"), *zip(BASELINES, "sv^", strict=True)):
        points = sorted(
            (m.workload.shape[m.workload.dim], m.share_of_limit(name))
            for m in _ran(report, name)
            if m.workload.is_memory_bound
        )
        if points:
            axes.plot(*zip(*points, strict=True), marker=marker, linestyle="", label=name)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("row length (elements)")
    axes.set_ylabel("share of a device copy's speed")
    axes.set_ylim(bottom=0)
    axes.axhline(1, color="gray", linewidth=0.8)
    axes.set_title(f"{report.op} on {report.device}")
    axes.legend()
    figure.savefig(file, dpi=150)


def _ran(report: Report, contender: str) -> Iterable[Measurement]:
    return [m for m in report.measurements if contender in m.timings]


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"

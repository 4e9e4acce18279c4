"""The tables of a file that `mpskit bench --json` filled, as Markdown.

    python benchmarks/tables.py benchmarks/log_softmax_h200.json

The file holds a report for each dtype. Figures are microseconds; of shares and speed-ups, means are
geometric.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from mpskit.markdown import markdown_table
from mpskit.pullrequest.evidence import load_benches
from mpskit.verify.benchmarks.run import BASELINES, TORCH_CPU, Measurement, Report
from mpskit.verify.benchmarks.timing import geometric_mean


def summary(reports: Sequence[Report]) -> str:
    """Shares of what is bound by memory, and speed-ups over all: least and mean."""
    rows = []
    for report in reports:
        shares = [m.share_of_limit() for m in report.measurements if m.workload.is_memory_bound]
        row = [_dtype(report), min(shares), geometric_mean(shares)]
        for baseline in BASELINES:
            found = [m.speed_up(baseline) for m in report.measurements]
            speed_ups = [each for each in found if each is not None]
            row += [min(speed_ups), geometric_mean(speed_ups)]
        rows.append(tuple(v if isinstance(v, str) else f"{v:.2f}" for v in row))
    head = ["dtype", "least share", "mean share"]
    for baseline in BASELINES:
        head += [f"least vs {baseline}", f"mean vs {baseline}"]
    return markdown_table(tuple(head), rows)


def table(report: Report) -> str:
    """Every workload, those that memory bounds in bold."""
    head = ["workload", "kernels", "limit", "share", *BASELINES, "vs torch", "max ULP"]
    return markdown_table(tuple(head), [_row(m) for m in report.measurements])


def _row(measurement: Measurement) -> tuple[str, ...]:
    workload = measurement.workload
    shape = "x".join(map(str, workload.shape))
    name = f"**{shape}**" if workload.is_memory_bound else shape
    layout = "" if workload.layout == "contiguous" else f" {workload.layout.replace('_', ' ')}"
    ours = measurement.timings["kernels"].median
    baselines = (measurement.timings.get(baseline) for baseline in BASELINES)
    speed_up = measurement.speed_up("torch")
    errors = (measurement.errors[name] for name in ("kernels", "torch", TORCH_CPU))
    return (
        f"{name} dim {workload.dim}{layout}",
        f"{ours:.1f}",
        f"{measurement.limit:.1f}",
        f"{measurement.share_of_limit():.2f}",
        *("-" if timing is None else f"{timing.median:.1f}" for timing in baselines),
        "-" if speed_up is None else f"{speed_up:.2f}x",
        " / ".join(f"{error.max_ulp:.2f}" for error in errors),
    )


def _dtype(report: Report) -> str:
    return report.measurements[0].workload.dtype


def main() -> None:
    reports = [bench.report for bench in load_benches(Path(sys.argv[1]))]
    print(summary(reports))
    for report in reports:
        print(f"\n## {_dtype(report)}\n\n`{report.command}`\n\n{table(report)}")


if __name__ == "__main__":
    main()

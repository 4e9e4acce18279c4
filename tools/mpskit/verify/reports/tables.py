"""The tables of a report, as text without a format."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import isfinite

from mpskit.verify.reports.result import (
    METAL_DTYPES,
    OpResult,
    SuiteResult,
    WorstError,
    split_host_name,
)

FLOATING = tuple(METAL_DTYPES.values())
_WIDTHS = ("u32", "u64")


@dataclass(frozen=True)
class Table:
    """Rows below a head; the columns whose indices are in ``words`` hold words, others numbers."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: Collection[int] = (0,)


def tests_table(result: SuiteResult) -> Table:
    """Outcomes by dtype of the input; the floating ones first."""
    names = [*(name for name in FLOATING if name in result.tests)]
    names += [name for name in result.tests if name not in names]
    rows = []
    for name in names:
        outcomes = result.tests[name]
        counts = (outcomes.passed, outcomes.failed, outcomes.skipped)
        rows.append((name, *map(str, counts)))
    return Table("Tests by dtype of the input", ("dtype", "passed", "failed", "skipped"), (*rows,))


def accuracy_table(op: OpResult) -> Table:
    """The kernels' largest error beside that of torch's CPU kernel, by dtype of the result."""
    rows = [
        (
            dtype,
            str(count),
            ulp(op.worst.get(dtype)),
            ulp(op.cpu_worst.get(dtype)),
            op.worst[dtype].sample if dtype in op.worst else "",
        )
        for dtype, count in op.samples.items()
    ]
    return Table(
        "Samples, and the largest error against float64",
        ("dtype", "samples", "worst ULP", "CPU kernel's", "worst sample"),
        (*rows,),
        words=(0, 4),
    )


def layouts_table(op: OpResult) -> Table:
    """How many inputs and results had each layout."""
    names = sorted({*op.input_layouts, *op.output_layouts})
    rows = [
        (name, str(op.input_layouts.get(name, 0)), str(op.output_layouts.get(name, 0)))
        for name in names
    ]
    return Table("Layouts", ("layout", "inputs", "results"), (*rows,))


def launches_table(launches: Mapping[str, int], kernels: Collection[str] = ()) -> Table:
    """Kernels down, dtypes and then index widths across.

    Args:
        launches: by host name.
        kernels: which have a row even if they were never launched.
    """
    counts: Counter[tuple[str, str]] = Counter()
    totals = Counter(dict.fromkeys(kernels, 0))
    for host_name, count in launches.items():
        kernel, dtype, index = split_host_name(host_name)
        counts[kernel, METAL_DTYPES.get(dtype, dtype)] += count
        counts[kernel, index] += count
        totals[kernel] += count
    columns = (*FLOATING, *_WIDTHS)
    rows = [
        (kernel, *(str(counts[kernel, column]) for column in columns), str(total))
        for kernel, total in sorted(totals.items())
    ]
    return Table("Launches", ("kernel", *columns, "total"), (*rows,))


def facts(result: SuiteResult) -> list[tuple[str, str]]:
    """What was run, on what, with what outcome: names and values."""
    outcome = f"{result.passed} passed, {result.failed} failed, {result.skipped} skipped"
    known = [
        ("outcome", outcome),
        ("samples", str(sum(result.samples.values()))),
        ("launches", str(sum(result.launches.values()))),
        ("backend", result.backend + (", every access watched" if result.sanitize else "")),
        ("part of the suite", shlex.join(result.chosen)),
        ("never launched", "" if result.chosen else ", ".join(result.never_launched)),
        ("torch", result.torch),
        ("date", result.date),
        ("time", f"{result.seconds:.1f} s"),
    ]
    return [(name, value) for name, value in known if value]


def ulp(error: WorstError | None) -> str:
    """An error for a table: ``0.50``; empty where there is none."""
    if error is None:
        return ""
    return f"{error.ulp:.2f}" if isfinite(error.ulp) else "∞"

"""Prints the toolkit's own figures: ``python -m benchmarks.cpu_backend``, from the root."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path

import click
import torch

from benchmarks.cpu_backend import fibers, processes
from benchmarks.cpu_backend.oclgrind import Oclgrind
from benchmarks.cpu_backend.row_kernel import RowKernel, compile_kernels
from mpskit.markdown import markdown_table
from mpskit.metal.host_compiler import find_compiler

ROWS, COLUMNS = 4096, 1024
WORKERS = 2

PLAIN, SANITIZED = "cpu backend", "cpu backend, sanitizer"
PLAIN_CORE = "cpu backend, of a core at work"
OCLGRIND, OCLGRIND_RACES = "Oclgrind", "Oclgrind, --data-races"

SECTIONS = ("speed", "compiling", "memory", "fibers")

Row = Sequence[object]


@click.command()
@click.option("--rows", default=ROWS, show_default=True, help=f"Of {COLUMNS} float32 values.")
@click.option("--oclgrind-rows", default=256, show_default=True, help="Oclgrind's share of them.")
@click.option("--rounds", default=7, show_default=True, help="Of which medians are taken.")
@click.option(
    "--section",
    "sections",
    type=click.Choice(SECTIONS),
    multiple=True,
    help="What to measure, more than once for several; all by default.",
)
def main(rows: int, oclgrind_rows: int, rounds: int, sections: Sequence[str]) -> None:
    """Measure the cpu backend and its sanitizer, side by side with Oclgrind where there is one."""
    torch.set_num_threads(WORKERS)
    oclgrind = Oclgrind.find()
    click.echo(_machine(oclgrind))
    wanted = sections or SECTIONS
    if "speed" in wanted:
        _show_speed(rows, rounds, oclgrind, oclgrind_rows)
    if "compiling" in wanted:
        _show("Compiling", ("", "seconds", "goal"), _compile_rows())
    if "memory" in wanted:
        _show("Memory of a launch", ("", "MB beyond the buffers", "goal"), _memory_rows(rows))
    if "fibers" in wanted:
        head = ("kernel whose threads run", "ns a thread", f"stacks of {fibers.GROUP} threads")
        _show("Fibers", head, _fiber_rows(rounds))


def _show_speed(rows: int, rounds: int, oclgrind: Oclgrind | None, oclgrind_rows: int) -> None:
    rates = _rates(_contenders(rows, oclgrind, oclgrind_rows), rounds)
    _show("log_softmax over rows", ("", "million elements/s", "goal"), _speed_rows(rates))
    if oclgrind:
        _show("Against Oclgrind", ("", "times as fast", "goal"), _oclgrind_rows(rates))
    else:
        click.echo("\nOclgrind is not installed (Debian: apt install oclgrind): not compared.")


def _machine(oclgrind: Oclgrind | None) -> str:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    lines = [
        f"{_processor()}, {os.cpu_count()} cores, {WORKERS} used; load {load}; {date.today()}.",
        f"torch {torch.__version__}; {find_compiler().version.splitlines()[0]}"
        + (f"; Oclgrind {oclgrind.version}." if oclgrind else "."),
    ]
    return "\n".join(lines)


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _contenders(
    rows: int, oclgrind: Oclgrind | None, oclgrind_rows: int
) -> dict[str, Callable[[], float]]:
    """Each contender as a function that works once, and returns its elements a second."""
    contenders: dict[str, Callable[[], float]] = {}
    for name, sanitize in ((PLAIN, False), (SANITIZED, True)):
        row_kernel = RowKernel(compile_kernels(sanitize=sanitize), rows, COLUMNS)
        row_kernel.seconds()
        contenders[name] = _rate(rows, row_kernel.seconds)
        if name == PLAIN:
            contenders[PLAIN_CORE] = _rate(rows, row_kernel.processor_seconds)
    if oclgrind:
        for name, races in ((OCLGRIND, False), (OCLGRIND_RACES, True)):
            seconds = partial(oclgrind.seconds, oclgrind_rows, COLUMNS, data_races=races)
            contenders[name] = _rate(oclgrind_rows, seconds)
    return contenders


def _rate(rows: int, seconds: Callable[[], float]) -> Callable[[], float]:
    return lambda: rows * COLUMNS / seconds()


def _rates(contenders: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Elements a second of each contender in each round, one contender after the other."""
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            rates[name].append(work())
    return rates


def _ratio(rates: Mapping[str, list[float]], faster: str, slower: str) -> float:
    """The median of the rounds' ratios."""
    pairs = zip(rates[faster], rates[slower], strict=True)
    return statistics.median(a / b for a, b in pairs)


def _speed_rows(rates: Mapping[str, list[float]]) -> list[Row]:
    rows: list[Row] = [
        (name, f"{statistics.median(values) / 1e6:.2f}", "≥ 20" if name == PLAIN else "")
        for name, values in rates.items()
    ]
    slower = _ratio(rates, PLAIN, SANITIZED)
    return [*rows, ("the sanitizer's slowdown", f"{slower:.1f}x", "≤ 30x")]


def _oclgrind_rows(rates: Mapping[str, list[float]]) -> list[Row]:
    pairs = (
        (PLAIN, OCLGRIND, "≥ 50x"),
        (SANITIZED, OCLGRIND, "≥ 5x"),
        (SANITIZED, OCLGRIND_RACES, ""),
    )
    return [(f"{a} / {b}", f"{_ratio(rates, a, b):.0f}x", goal) for a, b, goal in pairs]


def _compile_rows() -> list[Row]:
    cold, warm = processes.compile_times()
    return [
        ("LogSoftmax.metal, cold", f"{cold['LogSoftmax.metal']:.2f}", "≤ 15"),
        ("of which the compiler had a core", f"{cold['processor']:.2f}", ""),
        ("LogSoftmax.metal, warm", f"{warm['LogSoftmax.metal']:.3f}", "≤ 0.1"),
        ("before it, once a machine: runtime", f"{cold['first kernel']:.2f}", ""),
        ("before it, warm: loading the runtime", f"{warm['first kernel']:.3f}", ""),
    ]


def _memory_rows(rows: int) -> list[Row]:
    measured: list[Row] = []
    for name, sanitize, goal in ((PLAIN, False, "≤ 64"), (SANITIZED, True, "")):
        taken = processes.memory_beyond_buffers(rows, COLUMNS, sanitize=sanitize)
        shown = "not known here" if taken is None else f"{taken / 2**20:.1f}"
        measured.append((name, shown, goal))
    return measured


def _fiber_rows(rounds: int) -> list[Row]:
    return [
        (name.replace("_", " "), f"{found.nanoseconds:.1f}", found.stacks_of_a_threadgroup)
        for name, found in fibers.measure(rounds).items()
    ]


def _show(title: str, head: Sequence[str], rows: list[Row]) -> None:
    click.echo(f"\n## {title}\n\n{markdown_table(head, rows)}")


if __name__ == "__main__":
    main()

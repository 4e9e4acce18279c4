"""What the commands share for talking to people and to programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from mpskit.checkout.transaction import Recovery


def console() -> Console:
    """For results: standard output, as it is now, with no highlighting of its own."""
    return Console(file=sys.stdout, highlight=False, soft_wrap=True)


def show(text: str, style: str = "") -> None:
    """Print a line of results. ``text`` is printed as it is: brackets in it are no markup."""
    console().print(Text(text, style=style))


def show_json(data: Any) -> None:
    """Print ``data`` as JSON, for programs."""
    click.echo(json.dumps(data, indent=2))


@contextmanager
def progress(description: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, gone at the end; call what it yields with (done, total).

    Where standard error is no terminal nothing is shown.
    """
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(description, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield update


def show_recovery(recovery: Recovery | None) -> None:
    """Say on standard error what became of an earlier run that had crashed."""
    if recovery is None:
        return
    became = {
        "undone": "was undone first",
        "complete": "had come through",
        "abandoned": "was left as it is, since HEAD has moved on",
    }
    click.echo(f"an interrupted `mpskit {recovery.operation}` {became[recovery.outcome]}", err=True)
    for path in recovery.kept:
        click.echo(f"  left as it is: {path}, which has changed since", err=True)

"""``mpskit build``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from mpskit.cli.options import checkout_argument, json_option, patch_set_option
from mpskit.cli.output import show, show_json

if TYPE_CHECKING:
    from mpskit.building import BuildResult, Step, TargetResult

# As mpskit.building.TARGETS, without importing it for --help.
TARGETS = ("codegen", "kernels", "host", "full")
_STYLES = {"passed": "green", "failed": "red", "unavailable": "yellow"}


@click.command("build")
@checkout_argument
@click.option(
    "--target",
    "targets",
    type=click.Choice(TARGETS),
    multiple=True,
    help="Build this one; may be given several times. All that this machine can build by default, "
    "`full` only on a Mac that has built it before.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where products go; a folder in mpskit's cache by default.",
)
@click.option(
    "--log",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write what the programs print there.",
)
@patch_set_option
@json_option
def command(
    checkout: Path,
    targets: tuple[str, ...],
    out: Path | None,
    log: Path | None,
    patch_set: Path | None,
    as_json: bool,
) -> int:
    """Build what can be built of the applied patch set in the PyTorch checkout CHECKOUT.

    \b
    codegen  the checkout's torchgen, and whether it registers our kernels
    kernels  every .metal file through mpskit.metal; on a Mac through Apple's compiler too
    host     every .mm file as Objective-C++ for arm64 macOS
    full     PyTorch's own editable build, into this Python; on a Mac only

    Nothing is written into the checkout, except by `full`. Exits with 0 where all passed, 1 where
    one failed, and 3 where a target was named that this machine cannot build.
    """
    from mpskit.building import Context, Log, Subject, build, default_out
    from mpskit.checkout.checkout import Checkout
    from mpskit.patching import load_patch_set

    subject = Subject.find(Checkout.open(checkout), load_patch_set(patch_set))
    folder = (out or default_out(subject.root)).expanduser().absolute()
    with Log.open(log) as open_log, _announcer() as announce:
        result = build(Context(subject, folder, open_log, announce), targets)
    if as_json:
        show_json(_as_data(result, subject.root, folder, log))
    else:
        _show(result)
    return result.exit_code


@contextmanager
def _announcer() -> Iterator[Callable[[str, int, int], None]]:
    """Shows on a terminal, with a spinner, what is being done; elsewhere nothing."""
    terminal = Console(file=sys.stderr)
    if not terminal.is_terminal:
        yield lambda text, done, total: None
        return
    with terminal.status("build") as status:
        yield lambda text, done, total: status.update(f"{text} ({done} of {total})")


def _show(result: BuildResult) -> None:
    for target in result.targets:
        _show_target(target)
    show(f"{result.seconds:.1f} s in all", "dim")


def _show_target(result: TargetResult) -> None:
    outcome = result.outcome.value
    show(f"{result.target}: {outcome} ({result.seconds:.1f} s)", _STYLES[outcome])
    if result.unavailable:
        show(f"  {result.unavailable}")
    for step in result.steps:
        _show_step(step)
    if result.hint:
        show(f"  next: {result.hint}")
    if result.limits:
        show(f"  not proved: {result.limits}", "dim")


def _show_step(step: Step) -> None:
    detail = f": {step.detail}" if step.detail and step.passed else ""
    mark, style = ("ok    ", "") if step.passed else ("FAILED", "red")
    show(f"  {mark}  {step.name} ({step.seconds:.1f} s){detail}", style)
    for message in step.messages:
        show(f"    {message}")


def _as_data(result: BuildResult, root: Path, out: Path, log: Path | None) -> dict[str, object]:
    return {
        "checkout": str(root),
        "out": str(out),
        "log": str(log) if log else None,
        "passed": result.exit_code == 0,
        "seconds": round(result.seconds, 3),
        "targets": [target.to_json() for target in result.targets],
    }

"""``mpskit doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpskit.cli.options import json_option, patch_set_option
from mpskit.cli.output import show, show_json

if TYPE_CHECKING:
    from mpskit.building.doctor import CheckoutReport, Diagnosis


@click.command("doctor")
@click.argument("checkout", type=click.Path(path_type=Path), required=False)
@patch_set_option
@json_option
def command(checkout: Path | None, patch_set: Path | None, as_json: bool) -> int:
    """Say what this machine can do, and how to get what it lacks.

    With CHECKOUT also whether that PyTorch checkout is ready. Exits with 0 if the main job,
    applying the patch set and testing its kernels, can run.
    """
    from mpskit.building.doctor import diagnose

    diagnosis = diagnose(checkout, patch_set)
    if as_json:
        show_json(diagnosis.to_json())
    else:
        _show(diagnosis)
    return 0 if diagnosis.healthy else 1


def _show(diagnosis: Diagnosis) -> None:
    show("this machine", "bold")
    for tool in diagnosis.tools:
        show(f"  {tool.name}: {tool.found or 'missing'}", "" if tool.present else "dim")
    show("what it can do", "bold")
    installs = {tool.name: tool.install for tool in diagnosis.tools}
    for ability in diagnosis.abilities:
        style = "green" if ability.possible else "red" if ability.essential else "yellow"
        mark = "yes" if ability.possible else "no "
        show(f"  {mark}  {ability.name} ({ability.command})", style)
        for name in ability.missing:
            show(f"       {name} is missing: {installs[name]}")
    if diagnosis.checkout:
        _show_checkout(diagnosis.checkout)
    show("ready" if diagnosis.healthy else "not ready", "green" if diagnosis.healthy else "red")


def _show_checkout(report: CheckoutReport) -> None:
    show(f"{report.root}: PyTorch {report.version or 'of unknown version'}, {report.head}", "bold")
    show(f"  the patch set: {report.patch_set}")
    for problem in report.problems:
        show(f"  in the way: {problem}", "red")

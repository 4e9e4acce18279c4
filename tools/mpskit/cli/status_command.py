"""``mpskit status``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mpskit.checkout.checkout import Checkout
from mpskit.cli.options import (
    allow_old_base_option,
    checkout_argument,
    json_option,
    selected,
    selection_options,
)
from mpskit.cli.output import show, show_json
from mpskit.patching import PatchPlan, State, Status, status

_STYLES = {
    State.TODO: "yellow",
    State.DONE: "green",
    State.CHANGED: "magenta",
    State.IMPOSSIBLE: "red",
}


@click.command("status")
@checkout_argument
@selection_options
@allow_old_base_option
@json_option
def command(
    checkout: Path,
    patch_set: Path | None,
    patches: tuple[str, ...],
    up_to: str | None,
    allow_old_base: bool,
    as_json: bool,
) -> int:
    """Say which edits the PyTorch checkout CHECKOUT still needs. Changes nothing.

    Exits with 0 where the patch set is applied or can be, with 1 where it cannot.
    """
    found = status(
        Checkout.open(checkout),
        selected(patch_set, patches, up_to),
        allow_old_base=allow_old_base,
    )
    if as_json:
        show_json(_as_data(found))
    else:
        _show(found)
    return 0 if found.ready else 1


def _show(found: Status) -> None:
    metal = "has c10/metal" if found.c10_metal else "has no c10/metal"
    version = f"PyTorch {found.version}" if found.version else "PyTorch of unknown version"
    show(f"{found.root}: {version}, {metal}, on {found.head.name}", "bold")
    for patch in found.plan.patches:
        _show_patch(patch)
    for blocker in found.blockers:
        show(f"in the way: {blocker}", "red")
    for record in found.records:
        show(f"applied on branch {record.branch_name}, base {record.base[:12]}", "dim")


def _show_patch(planned: PatchPlan) -> None:
    layout = f", on a base of layout {planned.layout}" if planned.layout else ""
    show(f"{planned.patch.name}: {planned.state.value}{layout}", _STYLES[planned.state])
    for unmet in planned.unmet:
        show(f"  impossible  {unmet.reason}", _STYLES[State.IMPOSSIBLE])
    for edit in planned.edits:
        reason = f" ({edit.reason})" if edit.reason else ""
        show(
            f"  {edit.state.value:<10}  {edit.path}: {edit.what}{reason}",
            _STYLES[edit.state],
        )
        for line in edit.difference.splitlines():
            show(f"      {line}", "dim")


def _as_data(found: Status) -> dict[str, Any]:
    return {
        "checkout": str(found.root),
        "commit": found.head.commit,
        "branch": found.head.branch,
        "version": found.version,
        "c10_metal": found.c10_metal,
        "state": found.plan.state.value,
        "blockers": list(found.blockers),
        "applied": [record.to_json() for record in found.records],
        "patches": [
            {
                "name": planned.patch.name,
                "title": planned.patch.title,
                "state": planned.state.value,
                "layout": planned.layout,
                "unmet": [
                    {"path": unmet.path, "since": unmet.since, "reason": unmet.reason}
                    for unmet in planned.unmet
                ],
                "edits": [
                    {
                        "kind": edit.kind,
                        "path": edit.path,
                        "what": edit.what,
                        "state": edit.state.value,
                        "reason": edit.reason,
                        "difference": edit.difference,
                    }
                    for edit in planned.edits
                ],
            }
            for planned in found.plan.patches
        ],
    }

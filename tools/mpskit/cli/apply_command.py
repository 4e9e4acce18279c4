"""``mpskit apply``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mpskit.checkout.checkout import Checkout
from mpskit.cli.options import (
    allow_old_base_option,
    checkout_argument,
    json_option,
    patch_set_option,
)
from mpskit.cli.output import show, show_json, show_recovery
from mpskit.patching import Applied, apply, default_branch, load_patch_set, rehearse


@click.command("apply")
@checkout_argument
@patch_set_option
@click.option("--branch", metavar="NAME", help="The new branch; mpskit/<patch set> by default.")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@allow_old_base_option
@json_option
def command(
    checkout: Path,
    patch_set: Path | None,
    branch: str | None,
    dry_run: bool,
    allow_old_base: bool,
    as_json: bool,
) -> None:
    """Apply the patch set to the PyTorch checkout CHECKOUT, on a branch of its own.

    Each patch becomes a commit. It happens entirely or not at all; `mpskit revert` undoes it.
    """
    opened, loaded = Checkout.open(checkout), load_patch_set(patch_set)
    act = rehearse if dry_run else apply
    applied = act(opened, loaded, branch=branch, allow_old_base=allow_old_base)
    if as_json:
        show_json(_as_data(applied, dry_run))
        return
    show_recovery(applied.recovered)
    if applied.already:
        show(f"already applied on {applied.head.name}: nothing to do", "green")
    else:
        _show(applied, opened, branch or default_branch(loaded), dry_run)


def _show(applied: Applied, checkout: Checkout, branch: str, dry_run: bool) -> None:
    would = "would be " if dry_run else ""
    show(f"{would}applied on the new branch {branch}", "" if dry_run else "green")
    for planned in applied.plan.patches:
        if not planned.changes:
            continue
        show(f"  {planned.patch.title}", "bold")
        for edit in planned.edits:
            if edit.path in planned.changes:
                show(f"    {edit.path}: {edit.what}")
    if not dry_run:
        show(f"  undo with: mpskit revert {checkout.root}", "dim")


def _as_data(applied: Applied, dry_run: bool) -> dict[str, Any]:
    record = applied.record
    return {
        "dry_run": dry_run,
        "already": applied.already,
        "branch": applied.head.branch,
        "commit": applied.head.commit,
        "base": record.base if record else applied.plan.base,
        "paths": list(applied.plan.paths),
        "patches": [
            {"name": patch.name, "commit": patch.commit}
            for patch in (record.patches if record else ())
        ],
    }

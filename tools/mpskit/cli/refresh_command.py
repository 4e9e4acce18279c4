"""``mpskit refresh``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from mpskit.checkout.checkout import Checkout
from mpskit.cli.options import checkout_argument, json_option, patch_set_option
from mpskit.cli.output import show, show_json, show_recovery
from mpskit.patching import Refreshed, load_patch_set, refresh


@click.command("refresh")
@checkout_argument
@patch_set_option
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@json_option
def command(checkout: Path, patch_set: Path | None, dry_run: bool, as_json: bool) -> None:
    """Take edits made in the PyTorch checkout CHECKOUT back into the patch set.

    The patch's own files are written into the patch set's directory as they are in the work tree,
    and its commits are made anew with them. What cannot be taken back is named, with the reason.
    """
    refreshed = refresh(Checkout.open(checkout), load_patch_set(patch_set), dry_run=dry_run)
    if as_json:
        show_json(
            {
                "dry_run": dry_run,
                "already": refreshed.already,
                "directory": str(refreshed.directory),
                "taken": list(refreshed.taken),
                "left": [dataclasses.asdict(item) for item in refreshed.left],
                "commit": refreshed.head.commit,
            }
        )
        return
    show_recovery(refreshed.recovered)
    _show(refreshed, dry_run)


def _show(refreshed: Refreshed, dry_run: bool) -> None:
    if refreshed.already:
        show("the patch set has every edit that it can take: nothing to do", "green")
    elif refreshed.taken:
        done = "would be taken" if dry_run else "taken"
        show(f"{done} into {refreshed.directory}", "" if dry_run else "green")
    else:
        show(f"{refreshed.head.name} now carries the patch set as it is", "green")
    for path in refreshed.taken:
        show(f"  {path}")
    for item in refreshed.left:
        show(f"left: {item.path}: {item.reason}", "yellow")

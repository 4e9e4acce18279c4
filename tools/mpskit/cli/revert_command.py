"""``mpskit revert``."""

from __future__ import annotations

from pathlib import Path

import click

from mpskit.checkout.checkout import Checkout
from mpskit.cli.options import checkout_argument, json_option
from mpskit.cli.output import show, show_json, show_recovery
from mpskit.patching import revert


@click.command("revert")
@checkout_argument
@click.option("--branch", metavar="NAME", help="Which branch; the one checked out by default.")
@json_option
def command(checkout: Path, branch: str | None, as_json: bool) -> None:
    """Take the applied patch set off the PyTorch checkout CHECKOUT.

    Goes back to the branch or commit that was checked out before, and deletes the branch that
    `mpskit apply` made. Refuses where commits of yours would be lost.
    """
    reverted = revert(Checkout.open(checkout), branch=branch)
    record = reverted.record
    if as_json:
        show_json(
            {
                "reverted": record.branch if record else None,
                "branch": reverted.head.branch,
                "commit": reverted.head.commit,
            }
        )
        return
    show_recovery(reverted.recovered)
    if record is None:
        show("nothing is applied: nothing to do", "green")
    else:
        show(f"deleted branch {record.branch_name}; now on {reverted.head.name}", "green")

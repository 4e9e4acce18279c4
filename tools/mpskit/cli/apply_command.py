"""``mpskit apply``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mpskit.checkout.checkout import Checkout, Head
from mpskit.cli.options import (
    allow_old_base_option,
    checkout_argument,
    json_option,
    selected,
    selection_options,
)
from mpskit.cli.output import show, show_json, show_recovery
from mpskit.patching import (
    Applied,
    Plan,
    Record,
    Updated,
    apply,
    default_branch,
    rehearse,
    resume,
    update,
)


@click.command("apply")
@checkout_argument
@selection_options
@click.option("--branch", metavar="NAME", help="The new branch; mpskit/<patch set> by default.")
@click.option("--update", "updating", is_flag=True, help="Bring an applied branch up to date.")
@click.option("--continue", "go_on", is_flag=True, help="Go on with an update after a conflict.")
@click.option("--abort", is_flag=True, help="Give up an update that stopped at a conflict.")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@allow_old_base_option
@json_option
def command(
    checkout: Path,
    patch_set: Path | None,
    patches: tuple[str, ...],
    up_to: str | None,
    branch: str | None,
    updating: bool,
    go_on: bool,
    abort: bool,
    dry_run: bool,
    allow_old_base: bool,
    as_json: bool,
) -> None:
    """Apply the patch set to the PyTorch checkout CHECKOUT, on a branch of its own.

    Each patch becomes a commit. It happens entirely or not at all; `mpskit revert` undoes it.

    With --update, a branch that carries the patch set already is brought to the patch set as it is
    now: its commits are made anew, on the same base, or where another branch is checked out, on
    that one. Commits of yours on top are kept. Where they conflict, git stops in a rebase; resolve
    it, then --continue, or --abort.
    """
    if go_on and abort:
        raise click.UsageError("Give --continue or --abort, not both.")
    opened = Checkout.open(checkout)
    if go_on or abort:
        _report_resumed(resume(opened, abort=abort), abort, as_json)
        return
    loaded = selected(patch_set, patches, up_to)
    if updating:
        updated = update(
            opened, loaded, branch=branch, allow_old_base=allow_old_base, dry_run=dry_run
        )
        _report_update(updated, opened, dry_run, as_json)
        return
    act = rehearse if dry_run else apply
    applied = act(opened, loaded, branch=branch, allow_old_base=allow_old_base)
    if as_json:
        show_json(_as_data(applied, applied.record, dry_run))
        return
    show_recovery(applied.recovered)
    if applied.already:
        show(f"already applied on {applied.head.name}: nothing to do", "green")
        return
    name = branch or default_branch(loaded)
    done = "would be applied" if dry_run else "applied"
    show(f"{done} on the new branch {name}", "" if dry_run else "green")
    _show_changes(applied.plan)
    if not dry_run:
        show(f"  undo with: mpskit revert {opened.root}", "dim")


def _report_resumed(head: Head, aborted: bool, as_json: bool) -> None:
    if as_json:
        show_json({"aborted": aborted, "branch": head.branch, "commit": head.commit})
    else:
        show(f"{'given up' if aborted else 'updated'}; now on {head.name}", "green")


def _report_update(updated: Updated, checkout: Checkout, dry_run: bool, as_json: bool) -> None:
    if as_json:
        show_json(
            {**_as_data(updated, updated.record, dry_run), "kept_commits": list(updated.kept)}
        )
        return
    show_recovery(updated.recovered)
    if updated.already:
        show(f"{updated.head.name} is up to date: nothing to do", "green")
        return
    done = "would be updated" if dry_run else "updated"
    show(f"{done}: {updated.head.name}", "" if dry_run else "green")
    _show_changes(updated.plan)
    if updated.kept:
        count = len(updated.kept)
        show(f"  on top: {count} commit{'s' if count > 1 else ''} of yours, kept")


def _show_changes(plan: Plan) -> None:
    for planned in plan.patches:
        if not planned.changes:
            continue
        show(f"  {planned.patch.title}", "bold")
        for edit in planned.edits:
            if edit.path in planned.changes:
                show(f"    {edit.path}: {edit.what}")


def _as_data(outcome: Applied | Updated, record: Record | None, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "already": outcome.already,
        "branch": outcome.head.branch,
        "commit": outcome.head.commit,
        "base": record.base if record else outcome.plan.base,
        "paths": list(outcome.plan.paths),
        "patches": [
            {"name": patch.name, "commit": patch.commit}
            for patch in (record.patches if record else ())
        ],
    }

"""Everything there is to say about a checkout and a patch set, gathered without writing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mpskit.checkout.checkout import Checkout, Head
from mpskit.checkout.transaction import interrupted_move
from mpskit.patching.edits import State
from mpskit.patching.planning import Plan, plan
from mpskit.patching.record import Record, read_records
from mpskit.patching.series import PatchSet
from mpskit.patching.upstream_changes import with_upstream_changes


@dataclass(frozen=True)
class Status:
    """``blockers`` are what `apply` would refuse for besides the plan; ``records`` our branches."""

    root: Path
    head: Head
    version: str | None
    c10_metal: bool
    plan: Plan
    blockers: tuple[str, ...]
    records: tuple[Record, ...]

    @property
    def ready(self) -> bool:
        """Whether the patch set is applied already, or fits."""
        return self.plan.state is not State.IMPOSSIBLE


def status(checkout: Checkout, patch_set: PatchSet, *, allow_old_base: bool = False) -> Status:
    """Where ``patch_set`` stands on the checkout's HEAD."""
    head, records = checkout.head(), read_records(checkout)
    planned = plan(checkout, patch_set, allow_old_base=allow_old_base)
    return Status(
        root=checkout.root,
        head=head,
        version=checkout.version(),
        c10_metal=checkout.has("c10/metal"),
        plan=with_upstream_changes(checkout, planned, head, records),
        blockers=tuple(_blockers(checkout, planned)),
        records=tuple(records),
    )


def _blockers(checkout: Checkout, planned: Plan) -> list[str]:
    blockers = []
    interrupted = interrupted_move(checkout)
    if interrupted:
        blockers.append(
            f"an `mpskit {interrupted.operation}` was interrupted; the next apply or revert "
            "puts the checkout back first"
        )
    unfinished = checkout.unfinished_command()
    if unfinished:
        blockers.append(f"a {unfinished.name} waits to be ended with {unfinished.how_to_end}")
    blockers += [f"{item.path} is {item.what}" for item in checkout.dirty(planned.paths)]
    return blockers

"""Apply a patch set to a checkout, on a branch of its own, or leave the checkout as it was."""

from __future__ import annotations

from dataclasses import dataclass

from mpskit.checkout.checkout import Checkout, Head
from mpskit.checkout.git import RefChange
from mpskit.checkout.transaction import Move, Recovery, Transaction
from mpskit.errors import MpskitError
from mpskit.patching.edits import State
from mpskit.patching.planning import Plan, plan
from mpskit.patching.record import Record, read_record, record_ref, settle_pending
from mpskit.patching.series import PatchSet
from mpskit.patching.stacking import refuse_without_identity, write_stack


@dataclass(frozen=True)
class Applied:
    """The outcome of ``apply``; ``already`` where there was nothing left to do."""

    already: bool
    head: Head
    plan: Plan
    record: Record | None
    recovered: Recovery | None = None


def default_branch(patch_set: PatchSet) -> str:
    """The short name of the branch that ``patch_set`` is applied on."""
    return f"mpskit/{patch_set.name}"


def apply(
    checkout: Checkout,
    patch_set: PatchSet,
    *,
    branch: str | None = None,
    allow_old_base: bool = False,
) -> Applied:
    """Commit ``patch_set`` on top of HEAD, on the new ``branch``, and check that branch out.

    Applied already, it changes nothing (but goes to the branch where that is not checked out).

    Raises:
        MpskitError: the patch set does not fit, the branch's name is taken, changes of the user's
            are in the way, git has no name for the author, ...; nothing has changed then.
    """
    branch_name = branch or default_branch(patch_set)
    with Transaction.begin(checkout, "apply") as transaction:
        checkout.refuse_unfinished_command()
        settle_pending(checkout)
        job = _examine(checkout, patch_set, branch_name, allow_old_base)
        head, record = job.head, job.existing
        if record is None and job.plan.state is State.DONE:
            return Applied(True, head, job.plan, None, transaction.recovered)
        if record is None:
            branch_ref = f"refs/heads/{branch_name}"
            record = write_stack(checkout, patch_set, job.plan, head, branch_ref)
            move = _move(checkout, record, head)
        else:
            move = Move("apply", head, _tip(checkout, record), ())
        if move.before != move.after:
            transaction.carry_out(move)
        return Applied(
            job.existing is not None, move.after, job.plan, record, transaction.recovered
        )


def rehearse(
    checkout: Checkout,
    patch_set: PatchSet,
    *,
    branch: str | None = None,
    allow_old_base: bool = False,
) -> Applied:
    """What ``apply`` would do, with its refusals; writes nothing, so there are no commits yet."""
    checkout.refuse_unfinished_command()
    job = _examine(checkout, patch_set, branch or default_branch(patch_set), allow_old_base)
    already = job.existing is not None or job.plan.state is State.DONE
    head = _tip(checkout, job.existing) if job.existing else job.head
    return Applied(already, head, job.plan, job.existing)


@dataclass(frozen=True)
class _Job:
    """What there is to apply; ``existing`` is the branch that holds it already, if one does."""

    head: Head
    plan: Plan
    existing: Record | None


def _examine(
    checkout: Checkout, patch_set: PatchSet, branch_name: str, allow_old_base: bool
) -> _Job:
    """Find out what there is to do, and refuse everything that can be refused beforehand."""
    head = checkout.head()
    planned = plan(checkout, patch_set, allow_old_base=allow_old_base)
    here = read_record(checkout, head.branch)
    if planned.state is State.DONE:
        return _Job(head, planned, here)
    refuse_stale(here, patch_set)
    existing = _existing(checkout, patch_set, branch_name, head)
    if existing:
        tip = _tip(checkout, existing).commit
        checkout.refuse_dirty(checkout.changed_paths(head.commit, tip))
    else:
        planned.refuse_impossible()
        checkout.refuse_dirty(planned.paths)
        refuse_without_identity(checkout)
    return _Job(head, planned, existing)


def refuse_stale(record: Record | None, patch_set: PatchSet) -> None:
    """Raise where HEAD's branch carries the patch set in another version than ``patch_set``."""
    if record and record.digest != patch_set.digest:
        raise MpskitError(
            f"Branch {record.branch_name} carries another version of the patch set.",
            hint="Bring it to this one with `mpskit apply --update`.",
        )


def _existing(
    checkout: Checkout, patch_set: PatchSet, branch_name: str, head: Head
) -> Record | None:
    """The record of ``branch_name`` where it is this patch set on this base; None if it is free."""
    git = checkout.git
    if git.answer("check-ref-format", "--branch", branch_name) is None:
        raise MpskitError(
            f"{branch_name!r} cannot be the name of a branch.", hint="Give another --branch NAME."
        )
    branch = f"refs/heads/{branch_name}"
    if git.resolve(branch) is not None:
        record = read_record(checkout, branch)
        if record and (record.base, record.digest) == (head.commit, patch_set.digest):
            return record
        raise _taken(branch_name, record)
    for taken in _in_the_way_of(checkout, branch):
        raise _taken(taken, None)
    return None


def _in_the_way_of(checkout: Checkout, branch: str) -> list[str]:
    """Branches whose names are a directory of ``branch``'s or the other way round."""
    parents = branch.split("/")[2:-1]
    prefixes = ["/".join(parents[: count + 1]) for count in range(len(parents))]
    above = [name for name in prefixes if checkout.git.resolve(f"refs/heads/{name}") is not None]
    below = checkout.git.line("for-each-ref", "--format=%(refname:lstrip=2)", branch + "/")
    return above + below.splitlines()


def _taken(branch_name: str, record: Record | None) -> MpskitError:
    if record:
        return MpskitError(
            f"Branch {branch_name} carries this patch set on another base, {record.base[:12]}.",
            hint="Bring it here with `mpskit apply --update`, remove it with "
            f"`mpskit revert --branch {branch_name}`, or give --branch NAME.",
        )
    return MpskitError(
        f"There is a branch {branch_name} already, and mpskit did not make it.",
        hint="Give the patch set another branch with --branch NAME.",
    )


def _tip(checkout: Checkout, record: Record) -> Head:
    """The recorded branch as it is now; the user may have committed on top of ours."""
    return Head(checkout.git.line("rev-parse", "--verify", record.branch), record.branch)


def _move(checkout: Checkout, record: Record, head: Head) -> Move:
    name = record_ref(record.branch)
    # A record can outlive its branch, where the user deleted that by hand.
    old_record = checkout.git.resolve(name)
    return Move(
        "apply",
        before=head,
        after=Head(record.tip, record.branch),
        refs=(
            RefChange(record.branch, None, record.tip),
            RefChange(name, old_record, checkout.git.write_blob(record.content)),
        ),
    )

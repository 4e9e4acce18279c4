"""Bring an applied branch to the patch set as it is now, with the user's commits kept on top."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mpskit.checkout.checkout import Checkout, Head
from mpskit.checkout.git import GitError, RefChange
from mpskit.checkout.transaction import Move, Recovery, Transaction
from mpskit.errors import MpskitError
from mpskit.patching.planning import Plan, plan
from mpskit.patching.record import (
    Record,
    pending_content,
    pending_ref,
    read_pending_start,
    read_record,
    record_ref,
    settle_pending,
)
from mpskit.patching.replaying import Replayed, own_commits, replay
from mpskit.patching.series import PatchSet
from mpskit.patching.stacking import refuse_without_identity, write_stack


@dataclass(frozen=True)
class Updated:
    """The outcome of ``update``: the branch's new ``record``, and the user's commits on top.

    ``already`` where the branch was up to date.
    """

    already: bool
    head: Head
    plan: Plan
    record: Record
    kept: tuple[str, ...]
    recovered: Recovery | None = None


@dataclass(frozen=True)
class Rebuilt:
    """A branch built anew as objects: its stack of patches, and ``own`` replayed on top of it."""

    plan: Plan
    record: Record
    own: tuple[str, ...]
    replayed: Replayed


def update(
    checkout: Checkout,
    patch_set: PatchSet,
    *,
    branch: str | None = None,
    allow_old_base: bool = False,
    dry_run: bool = False,
) -> Updated:
    """Make the applied branch hold ``patch_set`` as it is now.

    On the branch, its base stays. From another branch or commit, the patch set goes on top of that
    one. The user's commits on top of ours are moved; where they conflict with the new patch set,
    git is left in the middle of a rebase that it can continue or abort.

    Raises:
        MpskitError: nothing is applied, the patch set does not fit, the user's commits conflict,
            ...; but for a conflict, nothing has changed then.
    """
    if dry_run:
        checkout.refuse_unfinished_command()
        with checkout.git.scratch() as scratch:
            job = _examine(checkout, patch_set, branch)
            rebuilt = _rebuild(checkout.through(scratch), patch_set, job, allow_old_base)
        if rebuilt.replayed.tip is None:
            raise MpskitError(
                _clash(rebuilt.replayed),
                hint="Without --dry-run, git stops there in a rebase for you to resolve it.",
            )
        return _updated(job, rebuilt, rebuilt.replayed.tip)
    with Transaction.begin(checkout, "update") as transaction:
        checkout.refuse_unfinished_command()
        settle_pending(checkout)
        job = _examine(checkout, patch_set, branch)
        rebuilt = _rebuild(checkout, patch_set, job, allow_old_base)
        if rebuilt.replayed.tip is None:
            tip = _redo_with_git(checkout, job, rebuilt)
        else:
            tip = rebuilt.replayed.tip
            move = move_to(checkout, transaction, "update", job, rebuilt.record, tip)
            transaction.carry_out(move)
        return _updated(job, rebuilt, tip, transaction.recovered)


@dataclass(frozen=True)
class Job:
    """The branch to build anew, as its ``record`` has it, and where HEAD is before that."""

    head: Head
    record: Record

    @property
    def is_checked_out(self) -> bool:
        return self.head.branch == self.record.branch


def _examine(checkout: Checkout, patch_set: PatchSet, branch: str | None) -> Job:
    refuse_without_identity(checkout)
    head = checkout.head()
    record = find_record(checkout, head, branch or f"mpskit/{patch_set.name}", given=bool(branch))
    checkout.refuse_checked_out_elsewhere(record.branch)
    return Job(head, record)


def _rebuild(checkout: Checkout, patch_set: PatchSet, job: Job, allow_old_base: bool) -> Rebuilt:
    origin = job.record.origin if job.is_checked_out else job.head
    return rebuild(checkout, job.record, patch_set, origin, allow_old_base=allow_old_base)


def _updated(job: Job, rebuilt: Rebuilt, tip: str, recovered: Recovery | None = None) -> Updated:
    already = rebuilt.record == job.record and job.is_checked_out
    after = Head(tip, job.record.branch)
    return Updated(already, after, rebuilt.plan, rebuilt.record, rebuilt.own, recovered)


def find_record(checkout: Checkout, head: Head, branch_name: str, *, given: bool) -> Record:
    """The record of HEAD's branch, or else of ``branch_name``, which goes first if ``given``.

    Raises:
        MpskitError: neither was made by mpskit.
    """
    named = f"refs/heads/{branch_name}"
    for candidate in (named,) if given else (head.branch, named):
        record = read_record(checkout, candidate)
        if record and checkout.git.resolve(record.branch) is not None:
            return record
    raise MpskitError(
        f"Neither {head.name} nor {branch_name} is a branch that mpskit applied a patch set on.",
        hint="Apply it first: mpskit apply",
    )


def rebuild(
    checkout: Checkout,
    record: Record,
    patch_set: PatchSet,
    origin: Head,
    *,
    decided: Collection[str] = (),
    allow_old_base: bool = True,
) -> Rebuilt:
    """Build ``record``'s branch anew from ``patch_set`` on top of ``origin``; moves nothing.

    At the paths ``decided`` the patch set's text wins over the user's commits.
    """
    allow_old_base = allow_old_base or origin.commit == record.base
    planned = plan(checkout, patch_set, commit=origin.commit, allow_old_base=allow_old_base)
    planned.refuse_impossible()
    if not planned.paths:
        raise MpskitError(
            f"{origin.name} has the patch set in it already: there is nothing to put on top.",
            hint=f"Remove the branch with `mpskit revert --branch {record.branch_name}`.",
        )
    own = own_commits(checkout, record.tip, record.branch)
    stack = write_stack(checkout, patch_set, planned, origin, record.branch, record)
    if stack.tip == record.tip and not decided:
        replayed = Replayed(checkout.git.line("rev-parse", "--verify", record.branch))
    else:
        replayed = replay(checkout, own, stack.tip, decided)
    return Rebuilt(planned, stack, tuple(own), replayed)


def move_to(
    checkout: Checkout,
    transaction: Transaction,
    operation: str,
    job: Job,
    record: Record,
    tip: str,
) -> Move:
    """The move that takes the branch to ``tip``, its record to ``record``, and checks it out.

    Raises:
        MpskitError: changes of the user's are in its way.
    """
    git = checkout.git
    after = Head(tip, record.branch)
    name = record_ref(record.branch)
    changes = (
        RefChange(record.branch, git.resolve(record.branch), tip),
        RefChange(name, git.resolve(name), git.write_blob(record.content)),
    )
    refs = tuple(change for change in changes if change.old != change.new)
    return Move(operation, job.head, after, refs, transaction.settled(job.head, after))


def _clash(conflict: Replayed) -> str:
    return (
        f"Your commit '{conflict.conflict}' and the new patch set change the same lines: "
        f"{', '.join(conflict.paths)}."
    )


def _redo_with_git(checkout: Checkout, job: Job, rebuilt: Rebuilt) -> str:
    """Have git redo the user's commits, so that it stops where they conflict; the tip if not."""
    clash = _clash(rebuilt.replayed)
    _refuse_any_change(checkout, clash)
    checkout.refuse_dirty(checkout.changed_paths(job.head.commit, rebuilt.record.tip))
    git, record = checkout.git, job.record
    ref = pending_ref(record.branch)
    content = pending_content(rebuilt.record, job.head)
    pending = RefChange(ref, git.resolve(ref), git.write_blob(content))
    git.change_refs([pending], "mpskit update")
    try:
        git.run(
            *("-c", "rebase.updateRefs=false", "-c", "rebase.autoStash=false"),
            *("rebase", "--quiet", "--no-autosquash", "--empty=drop"),
            *("--onto", rebuilt.record.tip, record.tip, record.branch_name),
        )
    except GitError:
        if not checkout.rebase_in_progress():
            git.change_refs([pending.reversed], "mpskit update: undone")
            raise
        raise stopped(checkout, clash) from None
    settle_pending(checkout)
    return checkout.head().commit


def _refuse_any_change(checkout: Checkout, what: str) -> None:
    changed = checkout.git.fields(
        "status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all"
    )
    if changed:
        raise MpskitError(
            f"{what} To resolve that git needs a work tree without changes: "
            f"{', '.join(line[3:] for line in changed)}.",
            hint="Commit them or put them aside with `git stash`; then run it again.",
        )


def stopped(checkout: Checkout, what: str) -> MpskitError:
    """The error for a rebase that waits for the user, with both sides of each conflict."""
    sides = checkout.git.run("diff", "--no-ext-diff", "--color=never").decode(errors="replace")
    return MpskitError(
        f"{what}\n{sides.rstrip()}",
        hint="Resolve each file and `git add` it; then `mpskit apply --continue`, or give up with "
        "`mpskit apply --abort`.",
    )


def resume(checkout: Checkout, *, abort: bool = False) -> Head:
    """Go on with an update that stopped at a conflict, or give it up; where HEAD is then.

    Given up, HEAD is where it was when the update began.

    Raises:
        MpskitError: no update has stopped, or it stops again.
    """
    with Transaction.begin(checkout, "update") as transaction:
        if not checkout.rebase_in_progress():
            settle_pending(checkout)
            raise MpskitError(
                "No update waits to be continued.", hint="Start one: mpskit apply --update"
            )
        branch = checkout.branch_in_rebase()
        begun_on = read_pending_start(checkout, branch) if branch else None
        try:
            git = checkout.git
            git.run("-c", "core.editor=true", "rebase", "--abort" if abort else "--continue")
        except GitError:
            if checkout.git.fields("ls-files", "-z", "--unmerged"):
                raise stopped(checkout, "There are conflicts left.") from None
            raise
        settle_pending(checkout)
        if abort and begun_on:
            _go_back(checkout, transaction, begun_on)
        return checkout.head()


def _go_back(checkout: Checkout, transaction: Transaction, place: Head) -> None:
    """Check out ``place``; a branch that is gone by now is left alone."""
    commit = checkout.git.resolve(place.branch) if place.branch else place.commit
    if commit is not None:
        before, after = checkout.head(), Head(commit, place.branch)
        settled = transaction.settled(before, after)
        transaction.carry_out(Move("update", before, after, (), settled))

"""Take an applied patch set off a checkout again."""

from __future__ import annotations

from dataclasses import dataclass

from mpskit.checkout.checkout import Checkout, Head
from mpskit.checkout.git import RefChange
from mpskit.checkout.transaction import Move, Recovery, Transaction
from mpskit.errors import MpskitError
from mpskit.patching.record import (
    Record,
    read_record,
    read_records,
    record_ref,
    settle_pending,
)


@dataclass(frozen=True)
class Reverted:
    """The outcome of ``revert``; ``record`` is what was taken off, None where there was nothing."""

    head: Head
    record: Record | None
    recovered: Recovery | None = None


def revert(checkout: Checkout, *, branch: str | None = None) -> Reverted:
    """Go back to where HEAD was before ``apply``, and delete the branch that ``apply`` made.

    ``branch`` (a short name) says which; by default the one checked out, or else the only one.

    Raises:
        MpskitError: the branch carries commits that would be lost, changes of the user's are in
            the way, or there are several branches to choose from; nothing has changed then.
    """
    with Transaction.begin(checkout, "revert") as transaction:
        checkout.refuse_unfinished_command()
        settle_pending(checkout)
        head = checkout.head()
        record = _chosen(checkout, head, branch)
        if record is None:
            return Reverted(head, None, transaction.recovered)
        checkout.refuse_checked_out_elsewhere(record.branch)
        tip = checkout.git.line("rev-parse", "--verify", record.branch)
        _refuse_to_lose_commits(checkout, record)
        move = Move(
            "revert",
            before=head,
            after=_origin_now(checkout, record) if head.branch == record.branch else head,
            refs=(
                RefChange(record.branch, tip, None),
                RefChange(
                    record_ref(record.branch),
                    checkout.git.resolve(record_ref(record.branch)),
                    None,
                ),
            ),
        )
        checkout.refuse_dirty(checkout.changed_paths(head.commit, move.after.commit))
        transaction.carry_out(move)
        return Reverted(move.after, record, transaction.recovered)


def _chosen(checkout: Checkout, head: Head, branch: str | None) -> Record | None:
    if branch is not None:
        record = read_record(checkout, f"refs/heads/{branch}")
        if record is None or checkout.git.resolve(record.branch) is None:
            raise MpskitError(
                f"mpskit has applied nothing on a branch {branch}.",
                hint="`mpskit status` names the branches that it made.",
            )
        return record
    records = read_records(checkout)
    for record in records:
        if record.branch == head.branch:
            return record
    if len(records) > 1:
        names = ", ".join(record.branch_name for record in records)
        raise MpskitError(
            f"mpskit made several branches: {names}.", hint="Say which one: --branch NAME."
        )
    return records[0] if records else None


def _origin_now(checkout: Checkout, record: Record) -> Head:
    """Where the user was before ``apply``: the branch wherever it is now, or else the commit."""
    branch = record.origin.branch
    commit = checkout.git.resolve(branch) if branch else None
    return Head(commit, branch) if commit else Head(record.base, None)


def _refuse_to_lose_commits(checkout: Checkout, record: Record) -> None:
    """Raise where the branch has commits on it that are neither ours nor on another branch."""
    name = record.branch_name
    lost = checkout.git.line(
        "log",
        "--format=%h %s",
        record.branch,
        "--not",
        record.tip,
        f"--exclude={name}",
        "--branches",
        "--remotes",
        "--tags",
    ).splitlines()
    if lost:
        raise MpskitError(
            f"Branch {name} has commits that would be lost: {'; '.join(lost)}.",
            hint=f"Keep them with `git branch NEW-NAME {name}`, then run the command again.",
        )

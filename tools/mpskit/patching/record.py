"""What mpskit remembers of an applied patch set: where it started and what it made.

Kept as JSON in a blob under ``refs/mpskit/applied/<branch>``. Not in the commits, because upstream
takes no trailers of ours; and a ref rather than a file, because git then creates branch and record
in one atomic step, shares them between worktrees and keeps both from its garbage collection.

An update that stops for the user to resolve conflicts leaves its record under
``refs/mpskit/pending/<branch>``. Once the branch holds the commits that it names, however git got
there, it is the branch's record; while it does not, it is void. It also says where HEAD was when
the update began, which git forgets in a rebase of a branch that was not checked out.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from mpskit.checkout.checkout import Checkout, Head
from mpskit.checkout.git import RefChange
from mpskit.errors import MpskitError

_BRANCHES = "refs/heads/"
_RECORDS = "refs/mpskit/applied/"
_PENDING = "refs/mpskit/pending/"
_FORMAT = 1


@dataclass(frozen=True)
class AppliedPatch:
    """One commit of an applied series, with the digest of the patch it was made from."""

    name: str
    commit: str
    digest: str


@dataclass(frozen=True)
class Record:
    """An applied patch set: its ``branch`` (a full ref name), made when HEAD was ``origin``."""

    branch: str
    origin: Head
    digest: str
    patches: tuple[AppliedPatch, ...]

    @property
    def base(self) -> str:
        return self.origin.commit

    @property
    def tip(self) -> str:
        """The last commit that is ours."""
        return self.patches[-1].commit

    @property
    def branch_name(self) -> str:
        return self.branch.removeprefix(_BRANCHES)

    def to_json(self) -> dict[str, Any]:
        return {"format": _FORMAT, **asdict(self)}

    @property
    def content(self) -> bytes:
        """The blob that the record is kept in."""
        return (json.dumps(self.to_json(), indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Record:
        return cls(
            data["branch"],
            Head(**data["origin"]),
            data["digest"],
            tuple(AppliedPatch(**patch) for patch in data["patches"]),
        )


def record_ref(branch: str) -> str:
    """The ref that holds the record of ``branch``, a full ref name."""
    return _RECORDS + branch.removeprefix(_BRANCHES)


def pending_ref(branch: str) -> str:
    """The ref that holds the record of an update of ``branch`` that waits for the user."""
    return _PENDING + branch.removeprefix(_BRANCHES)


def pending_content(record: Record, begun_on: Head) -> bytes:
    """The blob that the record of an update that waits for the user is kept in."""
    return (json.dumps({**record.to_json(), "begun_on": asdict(begun_on)}) + "\n").encode()


def read_pending_start(checkout: Checkout, branch: str) -> Head | None:
    """Where HEAD was when the waiting update of ``branch`` began; None where none waits."""
    blob = checkout.git.resolve(pending_ref(branch))
    if blob is None:
        return None
    begun_on = json.loads(checkout.git.contents([blob])[blob]).get("begun_on")
    return Head(**begun_on) if begun_on else None


def read_record(checkout: Checkout, branch: str | None) -> Record | None:
    """The record of ``branch`` (a full ref name); None where mpskit did not make that branch."""
    if branch is None:
        return None
    pending = _read(checkout, pending_ref(branch))
    if pending and checkout.is_ancestor(pending.tip, branch):
        return pending
    return _read(checkout, record_ref(branch))


def settle_pending(checkout: Checkout) -> None:
    """Make the record of an update that the user has ended the branch's, or drop a void one.

    While a rebase is under way, in this worktree or another, all stay as they are.
    """
    refs = checkout.git.line("for-each-ref", "--format=%(refname)", _PENDING).splitlines()
    if not refs or checkout.rebase_anywhere():
        return
    for ref in refs:
        branch = _BRANCHES + ref.removeprefix(_PENDING)
        blob = checkout.git.resolve(ref)
        changes = [RefChange(ref, blob, None)]
        pending = _read(checkout, ref)
        if pending and checkout.is_ancestor(pending.tip, branch):
            applied = record_ref(branch)
            settled = checkout.git.write_blob(pending.content)
            changes.append(RefChange(applied, checkout.git.resolve(applied), settled))
        checkout.git.change_refs(changes, "mpskit update")


def _read(checkout: Checkout, ref: str) -> Record | None:
    object_id = checkout.git.resolve(ref)
    if object_id is None:
        return None
    content = checkout.git.contents([object_id])[object_id]
    try:
        return Record.from_json(json.loads(content))
    except (ValueError, KeyError, TypeError):
        raise MpskitError(
            f"{ref} is no record that this mpskit can read.",
            hint="Use the mpskit that applied the patch set, or delete that ref and the branch.",
        ) from None


def read_records(checkout: Checkout) -> list[Record]:
    """The records of all branches that are still there."""
    refs = checkout.git.line("for-each-ref", "--format=%(refname)", _RECORDS).splitlines()
    branches = [_BRANCHES + ref.removeprefix(_RECORDS) for ref in refs]
    records = [read_record(checkout, branch) for branch in branches]
    return [
        record for record in records if record and checkout.git.resolve(record.branch) is not None
    ]

"""Take what the user edited in a checkout back into the patch set's directory."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mpskit.checkout.checkout import Checkout, Head
from mpskit.checkout.transaction import Move, Recovery, Transaction
from mpskit.errors import MpskitError
from mpskit.patching.edits import Edit, State
from mpskit.patching.planning import decode
from mpskit.patching.record import Record, read_record, settle_pending
from mpskit.patching.series import Patch, PatchFile, PatchSet
from mpskit.patching.stacking import refuse_without_identity
from mpskit.patching.updating import Job, move_to, rebuild

_CONFLICT = re.compile(r"^<{7} .*?^>{7} [^\n]*\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Left:
    """A changed file that ``refresh`` does not take back, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Refreshed:
    """The outcome of ``refresh``: paths taken into the patch set, and changed ones that were not.

    ``already`` where neither the patch set nor the branch had anything to take.
    """

    already: bool
    taken: tuple[str, ...]
    left: tuple[Left, ...]
    head: Head
    directory: Path
    recovered: Recovery | None = None


def refresh(checkout: Checkout, patch_set: PatchSet, *, dry_run: bool = False) -> Refreshed:
    """Write the patch's files as they are in the work tree into ``patch_set.directory``.

    The branch's commits are then made anew from the patch set, so that the checkout has the edits
    committed where they belong; no file of the work tree is written.

    Raises:
        MpskitError: the patch set is not applied on the branch that is checked out, both it and
            the checkout have changed a file, ...; nothing has changed then.
    """
    if dry_run:
        checkout.refuse_unfinished_command()
        job, applied = _examine(checkout, patch_set)
        with checkout.git.scratch() as scratch:
            survey = _Survey(checkout.through(scratch), job.record, applied)
        return _refreshed(job.head, survey, patch_set, not survey.taken)
    with Transaction.begin(checkout, "refresh") as transaction:
        checkout.refuse_unfinished_command()
        settle_pending(checkout)
        job, applied = _examine(checkout, patch_set)
        survey = _Survey(checkout, job.record, applied)
        # Everything that can be refused is refused before the patch set is written to.
        move = _prepare(checkout, transaction, job, applied, survey)
        for path, content in survey.taken.items():
            _replace(patch_set.directory / path, content)
        transaction.carry_out(move)
        already = not survey.taken and move.before == move.after and not move.refs
        return _refreshed(move.after, survey, patch_set, already, transaction.recovered)


def _refreshed(
    head: Head,
    survey: _Survey,
    patch_set: PatchSet,
    already: bool,
    recovered: Recovery | None = None,
) -> Refreshed:
    taken, left = tuple(survey.taken), tuple(survey.left)
    return Refreshed(already, taken, left, head, patch_set.directory, recovered)


def _examine(checkout: Checkout, patch_set: PatchSet) -> tuple[Job, PatchSet]:
    """The branch that is checked out, and those patches of the set that are applied on it."""
    refuse_without_identity(checkout)
    head = checkout.head()
    record = read_record(checkout, head.branch)
    if record is None:
        raise MpskitError(
            f"{head.name} is no branch that mpskit applied a patch set on.",
            hint="Check that branch out, or apply the patch set first: mpskit apply",
        )
    return Job(head, record), patch_set.select([item.name for item in record.patches])


def _prepare(
    checkout: Checkout, transaction: Transaction, job: Job, applied: PatchSet, survey: _Survey
) -> Move:
    """Build the branch anew from the patch set as it will be; the move that goes there."""
    record = job.record
    target = _with_contents(applied, survey.taken)
    decided = (*survey.taken, *survey.taken_before)
    rebuilt = rebuild(checkout, record, target, record.origin, decided=decided)
    if rebuilt.replayed.tip is None:
        raise MpskitError(
            f"Your commit '{rebuilt.replayed.conflict}' and the patch set change the same lines: "
            f"{', '.join(rebuilt.replayed.paths)}.",
            hint="Run `mpskit apply --update` first, which lets you resolve that.",
        )
    return move_to(checkout, transaction, "refresh", job, rebuilt.record, rebuilt.replayed.tip)


def _with_contents(patch_set: PatchSet, contents: Mapping[str, bytes]) -> PatchSet:
    """``patch_set`` as it is once its files have ``contents``."""
    patches = tuple(
        replace(
            patch,
            files=tuple(
                replace(file, content=contents.get(file.path, file.content)) for file in patch.files
            ),
        )
        for patch in patch_set.patches
    )
    return replace(patch_set, patches=patches)


class _Survey:
    """What of the work tree differs from the applied patches: to be ``taken``, or ``left``.

    ``taken_before`` are files that the patch set has already, as after a run that was interrupted.
    """

    def __init__(self, checkout: Checkout, record: Record, applied: PatchSet) -> None:
        self.checkout = checkout
        self.record = record
        self.taken: dict[str, bytes] = {}
        self.taken_before: list[str] = []
        self.left: list[Left] = []
        paths = applied.paths
        self._present = checkout.work_tree_entries(paths, store=True)
        self._tip = checkout.git.entries(record.tip, paths)
        for patch in applied.patches:
            for file in patch.files:
                self._file(patch, file, applied)
        self._edited_files(applied)

    def _file(self, patch: Patch, file: PatchFile, applied: PatchSet) -> None:
        path = file.path
        present, tip = self._present.get(path), self._tip.get(path)
        if present is None or tip is None:
            reason = "is no longer there as a plain file; take it out of `files` in series.toml"
            self.left.append(Left(path, reason))
            return
        if present.object_id == tip.object_id:
            return
        editor = _editor_of(path, patch, applied)
        if editor:
            reason = f"patch {editor} edits what patch {patch.name} adds; change both by hand"
            self.left.append(Left(path, reason))
            return
        texts = self.checkout.git.contents([present.object_id, tip.object_id])
        content = texts[present.object_id]
        if content == file.content:
            self.taken_before.append(path)
            return
        if file.content != texts[tip.object_id]:
            raise _both_changed(self.checkout, path, content, texts[tip.object_id], file.content)
        self.taken[path] = content

    def _edited_files(self, applied: PatchSet) -> None:
        """Files of upstream's that the patches change by edits: a change there is the user's to
        put into words."""
        ours = {file.path for patch in applied.patches for file in patch.files}
        changed = self.checkout.changed_paths(self.record.base, self.record.tip)
        edits: dict[str, list[Edit]] = {}
        for patch in applied.patches:
            for edit in (*patch.common_edits, *(e for item in patch.layouts for e in item.edits)):
                if edit.path in changed and edit.path not in ours:
                    edits.setdefault(edit.path, []).append(edit)
        for path, made in edits.items():
            present, tip = self._present.get(path), self._tip.get(path)
            if present != tip:
                self.left.append(Left(path, self._why_left(path, made)))

    def _why_left(self, path: str, edits: list[Edit]) -> str:
        present = self._present.get(path)
        if present is None:
            return "is no longer there as a plain file, and the patch edits it"
        text = decode(self.checkout.git.contents([present.object_id])[present.object_id])
        for edit in edits:
            outcome = edit.evaluate(text, self._read)
            if outcome.state is not State.DONE:
                return (
                    f"your change undoes the edit `{edit.describe()}` or lies inside it; change "
                    "that edit in series.toml, or the file that has the code now"
                )
        return (
            "the patch changes this file by edits and not as a whole; put your change into "
            "series.toml as a replace_in or insert_after, or commit it on top"
        )

    def _read(self, path: str) -> str | None:
        place = self.checkout.root / path
        return decode(place.read_bytes()) if place.is_file() else None


def _editor_of(path: str, patch: Patch, applied: PatchSet) -> str | None:
    """The patch behind ``patch`` that edits ``path``, if one does."""
    behind = applied.patches[applied.patches.index(patch) + 1 :]
    for other in behind:
        edits = (*other.common_edits, *(edit for item in other.layouts for edit in item.edits))
        if any(edit.path == path for edit in edits):
            return other.name
    return None


def _both_changed(
    checkout: Checkout, path: str, ours: bytes, base: bytes, theirs: bytes
) -> MpskitError:
    sides = ("the checkout", "the patch set")
    marked = checkout.git.conflict_marked(ours, base, theirs, sides).decode(errors="replace")
    conflicts = "".join(f"\n{hunk.rstrip()}" for hunk in _CONFLICT.findall(marked))
    return MpskitError(
        f"{path} has changed both in {checkout.root} and in the patch set since it was applied."
        f"{conflicts}",
        hint="Commit your edit there and run `mpskit apply --update`, which merges the two; then "
        "run `mpskit refresh` again.",
    )


def _replace(place: Path, content: bytes) -> None:
    """Write ``place`` entirely or not at all, its mode and what a link points to kept."""
    target = place.resolve()
    descriptor, draft = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).chmod(target.stat().st_mode & 0o7777)
        Path(draft).replace(target)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise

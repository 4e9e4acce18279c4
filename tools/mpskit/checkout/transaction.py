"""Move a checkout from one commit to another, refs included, entirely or not at all.

The new commits exist as git objects before anything here runs. A move writes a journal into git's
directory, then makes refs, then has git change the work tree, then deletes refs. A failure on the
way is undone at once; after a crash the next move reads the journal and undoes it first.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from mpskit.checkout.checkout import Checkout, Head
from mpskit.checkout.git import (
    Entry,
    RefChange,
    disk_errors_explained,
    explain_os_error,
    index_information,
)
from mpskit.checkout.lock import exclusive
from mpskit.errors import MpskitError

_STATE_DIRECTORY = "mpskit"
_JOURNAL = "journal.json"


@dataclass(frozen=True)
class Move:
    """Take HEAD, index and work tree from ``before`` to ``after``, and change ``refs``."""

    operation: str
    before: Head
    after: Head
    refs: tuple[RefChange, ...]

    @property
    def reason(self) -> str:
        """For the reflogs."""
        return f"mpskit {self.operation}"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Move:
        data: dict[str, Any] = json.loads(text)
        return cls(
            data["operation"],
            Head(**data["before"]),
            Head(**data["after"]),
            tuple(RefChange(**change) for change in data["refs"]),
        )


@dataclass(frozen=True)
class Recovery:
    """What became of a move that had crashed; ``kept`` are files that held another text."""

    operation: str
    outcome: Literal["undone", "complete", "abandoned"]
    kept: tuple[str, ...] = ()


class Transaction:
    """The right to move ``checkout``; at most one process has it. See ``begin``."""

    def __init__(self, checkout: Checkout) -> None:
        self.checkout = checkout
        self.git = checkout.git
        self.journal = _journal(checkout)
        self.recovered: Recovery | None = None

    @classmethod
    @contextlib.contextmanager
    def begin(cls, checkout: Checkout, operation: str) -> Iterator[Transaction]:
        """Lock ``checkout`` and put right what a crashed move left behind.

        Raises:
            MpskitError: another process holds the lock, or the repository cannot be written to.
        """
        directory = checkout.git_directory / _STATE_DIRECTORY
        with (
            disk_errors_explained(checkout.root),
            exclusive(directory, operation, checkout.root),
        ):
            transaction = cls(checkout)
            transaction.recovered = transaction._recover()
            yield transaction

    def carry_out(self, move: Move) -> None:
        """Do ``move``, or leave everything as it was and raise."""
        try:
            _write_atomically(self.journal, move.to_json())
            self.git.change_refs((ref for ref in move.refs if ref.new is not None), move.reason)
            if move.before != move.after:
                self._switch(move.after)
            self.git.change_refs((ref for ref in move.refs if ref.new is None), move.reason)
        except BaseException as failure:
            self._undo_at_once(move, failure)
            raise
        self.journal.unlink()

    def _undo_at_once(self, move: Move, failure: BaseException) -> None:
        try:
            self._undo(move)
        except (MpskitError, OSError) as trouble:
            said = [_sentence(error, self.checkout.root) for error in (failure, trouble)]
            raise MpskitError(
                f"{said[0]} Undoing what was begun did not work either: {said[1]}",
                hint="Mend that; then run `mpskit revert`, which puts everything back.",
            ) from failure
        self.journal.unlink(missing_ok=True)

    def _switch(self, head: Head) -> None:
        """Check ``head`` out: only paths that differ change, others keep what the user did."""
        where = ["--detach", head.commit]
        if head.branch is not None:
            where = [head.branch.removeprefix("refs/heads/")]
        self.git.run("checkout", "--quiet", "--no-overwrite-ignore", *where, "--")

    def _recover(self) -> Recovery | None:
        # Of a journal whose writing was cut short nothing has been acted on.
        _draft(self.journal).unlink(missing_ok=True)
        move = interrupted_move(self.checkout)
        if move is None:
            return None
        recovery = self._put_right(move)
        self.journal.unlink()
        return recovery

    def _put_right(self, move: Move) -> Recovery:
        if self.checkout.head() not in (move.before, move.after):
            # The user has gone elsewhere since the crash; what is there now is theirs.
            return Recovery(move.operation, "abandoned")
        if self._is_complete(move):
            return Recovery(move.operation, "complete")
        return Recovery(move.operation, "undone", self._undo(move))

    def _is_complete(self, move: Move) -> bool:
        return (
            self.checkout.head() == move.after
            and all(self.git.resolve(ref.name) == ref.new for ref in move.refs)
            and not self.checkout.dirty(
                self.checkout.changed_paths(move.before.commit, move.after.commit)
            )
        )

    def _undo(self, move: Move) -> tuple[str, ...]:
        """Back to ``move.before`` from wherever ``move`` stopped; done twice it does no harm.

        Returns the paths left alone because they hold neither the old nor the new text.
        """
        paths = self.checkout.changed_paths(move.before.commit, move.after.commit)
        before = self.git.entries(move.before.commit, paths)
        kept, rewrite = self._take_back_files(paths, before, move)
        self._restore_index(paths, before)
        if rewrite:
            # No `-u`: on a full disk there is no room to write the index once more.
            self.git.run("checkout-index", "-f", "--", *rewrite)
            self.git.answer("update-index", "-q", "--refresh")
        self._restore_head(move)
        self.git.change_refs(
            [
                ref.reversed
                for ref in move.refs
                if ref.old != ref.new and self.git.resolve(ref.name) == ref.new
            ],
            f"{move.reason}: undone",
        )
        return tuple(kept)

    def _take_back_files(
        self, paths: list[str], before: dict[str, Entry], move: Move
    ) -> tuple[list[str], list[str]]:
        """Delete the files that ``move`` added; list those to leave alone, and those to rewrite.

        Deleting comes first of all: where the disk is full it makes room for the rest.
        """
        after = self.git.entries(move.after.commit, paths)
        kept, rewrite = [], []
        for path in paths:
            ours = self._is_ours(path, before.get(path), after.get(path))
            if ours is False:
                kept.append(path)
            elif ours and path in before:
                rewrite.append(path)
            elif ours:
                _remove_with_empty_parents(self.checkout.root, path)
        return kept, rewrite

    def _restore_index(self, paths: list[str], before: dict[str, Entry]) -> None:
        now = self._index_entries(paths)
        changes = {path: before.get(path) for path in paths if now.get(path) != before.get(path)}
        if changes:
            self.git.run("update-index", "-z", "--index-info", stdin=index_information(changes))

    def _index_entries(self, paths: list[str]) -> dict[str, Entry]:
        if not paths:
            return {}
        entries = {}
        for field in self.git.fields("ls-files", "-z", "--stage", "--", *paths):
            details, path = field.split("\t", 1)
            mode, object_id, _stage = details.split(" ")
            entries[path] = Entry(mode, object_id)
        return entries

    def _is_ours(self, path: str, before: Entry | None, after: Entry | None) -> bool | None:
        """Whether ``path`` holds the move's text, whole or cut off; None where it is as before."""
        place = self.checkout.root / path
        if not os.path.lexists(place):
            return True if before else None
        if place.is_symlink() or not place.is_file():
            return False
        object_id = self.git.line("hash-object", "--", path)
        if before and object_id == before.object_id:
            return None
        if after is None:
            return False
        return object_id == after.object_id or self._is_cut_off(place, after.object_id)

    def _is_cut_off(self, place: Path, object_id: str) -> bool:
        """Whether ``place`` is the beginning of a blob, as a crash in mid-write leaves it."""
        content = self.git.contents([object_id])[object_id]
        return content.startswith(place.read_bytes())

    def _restore_head(self, move: Move) -> None:
        if self.checkout.head() == move.before:
            return
        reason = f"{move.reason}: undone"
        if move.before.branch is not None:
            self.git.run("symbolic-ref", "-m", reason, "HEAD", move.before.branch)
        else:
            self.git.run("update-ref", "--no-deref", "-m", reason, "HEAD", move.before.commit)


def interrupted_move(checkout: Checkout) -> Move | None:
    """The move that crashed in ``checkout`` and waits to be undone, if there is one."""
    try:
        return Move.from_json(_journal(checkout).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise MpskitError(
            f"{_journal(checkout)}, the record of an interrupted run, cannot be read.",
            hint="Look at `git status`, put right what is not, and delete that file.",
        ) from None


def _journal(checkout: Checkout) -> Path:
    return checkout.git_directory / _STATE_DIRECTORY / _JOURNAL


def _write_atomically(path: Path, text: str) -> None:
    draft = _draft(path)
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _draft(path: Path) -> Path:
    return path.with_suffix(".new")


def _sentence(error: BaseException, directory: Path) -> str:
    if isinstance(error, OSError):
        error = explain_os_error(error, directory) or error
    if isinstance(error, MpskitError):
        return error.message
    return "Interrupted." if isinstance(error, KeyboardInterrupt) else f"{error}."


def _remove_with_empty_parents(root: Path, path: str) -> None:
    place = root / path
    place.unlink()
    for parent in place.parents:
        if parent == root:
            return
        try:
            parent.rmdir()
        except OSError:
            return

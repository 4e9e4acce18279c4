"""Move a checkout from one commit to another, refs included, entirely or not at all.

The new commits exist as git objects before anything here runs. A move writes a journal into git's
directory first. To go to another branch it makes refs, has git change the work tree, and deletes
refs; to move the branch that is checked out it has git change the work tree, and the refs last.
A failure on the way is undone at once; after a crash the next move reads the journal and undoes
it first.
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
class Settled:
    """A file of the user's that a move finds as it would leave it; ``staged`` is its index entry.

    Neither the move nor its undoing writes such a file: only the index follows.
    """

    path: str
    staged: Entry | None


@dataclass(frozen=True)
class Move:
    """Take HEAD, index and work tree from ``before`` to ``after``, and change ``refs``."""

    operation: str
    before: Head
    after: Head
    refs: tuple[RefChange, ...]
    settled: tuple[Settled, ...] = ()

    @property
    def in_place(self) -> bool:
        """Whether the branch that is checked out moves, and stays checked out."""
        return self.before.branch is not None and self.before.branch == self.after.branch

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
            tuple(
                Settled(item["path"], Entry(**item["staged"]) if item["staged"] else None)
                for item in data.get("settled", ())
            ),
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
        if not move.refs and move.before == move.after:
            return
        try:
            _write_atomically(self.journal, move.to_json())
            if move.in_place and move.before != move.after:
                self._advance(move)
                self.git.change_refs(move.refs, move.reason)
            else:
                self._go_elsewhere(move)
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

    def settled(self, before: Head, after: Head) -> tuple[Settled, ...]:
        """The files that are changed by the user, but are as moving to ``after`` would have them.

        Raises:
            MpskitError: at another path that the move changes, there are changes of the user's.
        """
        paths = self.checkout.changed_paths(before.commit, after.commit)
        dirty = [item.path for item in self.checkout.dirty(paths)]
        wanted = self.git.entries(after.commit, dirty)
        present = self.checkout.work_tree_entries(dirty)
        staged = self.checkout.index_entries(dirty)
        old = self.git.entries(before.commit, dirty)
        settled = [
            Settled(path, staged.get(path))
            for path in dirty
            if path in wanted
            and present.get(path) == wanted[path]
            and staged.get(path) in (old.get(path), wanted[path])
        ]
        done = {item.path for item in settled}
        self.checkout.refuse_dirty(path for path in dirty if path not in done)
        return tuple(settled)

    def _go_elsewhere(self, move: Move) -> None:
        self.git.change_refs((ref for ref in move.refs if ref.new is not None), move.reason)
        if move.before != move.after:
            self._switch(move.after)
        self.git.change_refs((ref for ref in move.refs if ref.new is None), move.reason)

    def _advance(self, move: Move) -> None:
        """Bring index and work tree to ``move.after``, with HEAD's branch still where it was."""
        paths = [item.path for item in move.settled]
        if paths:
            entries = self.git.entries(move.after.commit, paths)
            self.git.run("update-index", "-z", "--index-info", stdin=index_information(entries))
            self.git.answer("update-index", "-q", "--refresh")
        self.git.run("read-tree", "-m", "-u", move.before.commit, move.after.commit)

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
        settled = {item.path: item.staged for item in move.settled}
        ours = [path for path in paths if path not in settled]
        kept, rewrite = self._take_back_files(ours, before, move)
        self._restore_index({path: settled.get(path, before.get(path)) for path in paths})
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

    def _restore_index(self, wanted: dict[str, Entry | None]) -> None:
        now = self.checkout.index_entries(wanted)
        changes = {path: entry for path, entry in wanted.items() if now.get(path) != entry}
        if changes:
            self.git.run("update-index", "-z", "--index-info", stdin=index_information(changes))

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
        # With core.autocrlf the file has other line ends than the blob.
        written = place.read_bytes().replace(b"\r\n", b"\n").removesuffix(b"\r")
        return content.replace(b"\r\n", b"\n").startswith(written)

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

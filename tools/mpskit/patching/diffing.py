"""The difference a patch set makes, from git objects alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mpskit.checkout.checkout import Checkout
from mpskit.checkout.git import Git
from mpskit.patching.applying import refuse_stale
from mpskit.patching.edits import State
from mpskit.patching.planning import plan, write_patched_tree
from mpskit.patching.record import read_record
from mpskit.patching.series import PatchSet


@dataclass(frozen=True)
class FileDifference:
    """Lines added to and deleted from one file; None for a binary one."""

    path: str
    added: int | None
    deleted: int | None


class Difference:
    """From ``old`` to ``new``, a commit or tree each; valid inside ``difference``'s block."""

    def __init__(self, git: Git, old: str, new: str) -> None:
        self._git = git
        self.old = old
        self.new = new

    def text(self, *, stat: bool = False, color: bool = False) -> str:
        """A unified diff, or git's table of changed lines by file."""
        options = ["--stat=100" if stat else "--patch"]
        options.append("--color=always" if color else "--color=never")
        output = self._git.run(
            "diff", "--no-ext-diff", "--no-textconv", "--no-renames", *options, self.old, self.new
        )
        return output.decode(errors="replace")

    def files(self) -> list[FileDifference]:
        """Changed lines by file."""
        fields = self._git.fields(
            "diff", "--no-ext-diff", "--no-renames", "--numstat", "-z", self.old, self.new
        )
        return [_file_difference(line) for line in fields]


def _file_difference(line: str) -> FileDifference:
    added, deleted, path = line.split("\t", 2)
    return FileDifference(
        path,
        None if added == "-" else int(added),
        None if deleted == "-" else int(deleted),
    )


@contextmanager
def difference(
    checkout: Checkout, patch_set: PatchSet, *, allow_old_base: bool = False
) -> Iterator[Difference]:
    """What ``patch_set`` made of the checkout, or where it is not applied, what it would make.

    Nothing is written into the repository, not even objects.

    Raises:
        MpskitError: the patch set does not fit the checkout's HEAD.
    """
    record = read_record(checkout, checkout.head().branch)
    planned = plan(checkout, patch_set, allow_old_base=allow_old_base)
    if record and planned.state is State.DONE:
        yield Difference(checkout.git, record.base, record.tip)
        return
    refuse_stale(record, patch_set)
    planned.refuse_impossible()
    changes = {path: text for item in planned.patches for path, text in item.changes.items()}
    with checkout.git.scratch() as scratch:
        yield Difference(
            scratch,
            planned.base,
            write_patched_tree(checkout, scratch, planned.base, changes)
            if changes
            else planned.base,
        )

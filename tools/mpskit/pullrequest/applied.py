"""The applied series that pull requests are made of: a commit a patch, and the texts in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mpskit.checkout import Checkout
from mpskit.errors import MpskitError
from mpskit.patching import Patch, PatchSet, Record, read_record

# Where a patch set defines ops of its own, as opinfo/__init__.py says.
_DEFINITIONS = "opinfo"


@dataclass(frozen=True)
class PatchCommit:
    """A patch of the series as the commit that it has become, on top of ``parent``.

    ``definitions_dir`` is where the patch set defines its ops for `mpskit test`; None where it
    leaves that to mpskit.
    """

    checkout: Checkout
    patch: Patch
    commit: str
    parent: str
    definitions_dir: Path | None = None

    @property
    def message(self) -> str:
        """The commit's message, as git has it."""
        said = self.checkout.git.run("log", "-1", "--format=%B", "--encoding=UTF-8", self.commit)
        return said.decode(errors="replace").rstrip("\n") + "\n"

    @property
    def title(self) -> str:
        return self.message.splitlines()[0]

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path at which the commit differs from its parent."""
        return tuple(self.checkout.changed_paths(self.parent, self.commit))

    def texts(self) -> dict[str, str]:
        """The files that the commit adds or changes, as they are in it."""
        return _decoded(self.checkout.read_all(self.commit, self.paths))

    def texts_before(self) -> dict[str, str]:
        """The files that the commit changes or deletes, as they are in its parent."""
        return _decoded(self.checkout.read_all(self.parent, self.paths))


@dataclass(frozen=True)
class AppliedSeries:
    """A patch set on the branch that ``mpskit apply`` has made, which is checked out."""

    checkout: Checkout
    patch_set: PatchSet
    record: Record
    commits: tuple[PatchCommit, ...]

    @classmethod
    def find(cls, checkout: Checkout, patch_set: PatchSet) -> AppliedSeries:
        """The series on the checkout's branch.

        Raises:
            MpskitError: the branch carries no patch set, or another version of this one.
        """
        head = checkout.head()
        record = read_record(checkout, head.branch)
        if record is None:
            raise MpskitError(
                f"{checkout.root} has no patch set applied on {head.name}.",
                hint=f"Apply it first: mpskit apply {checkout.root}",
            )
        if record.digest != patch_set.digest:
            raise MpskitError(
                f"Branch {record.branch_name} carries another version of the patch set.",
                hint="Bring it to this one with `mpskit apply --update`.",
            )
        return cls(checkout, patch_set, record, tuple(_commits(checkout, patch_set, record)))


def _commits(checkout: Checkout, patch_set: PatchSet, record: Record) -> list[PatchCommit]:
    by_name = {patch.name: patch for patch in patch_set.patches}
    folder = patch_set.directory / _DEFINITIONS
    definitions = folder if folder.is_dir() else None
    parent, commits = record.base, []
    for item in record.patches:
        patch = by_name[item.name]
        commits.append(PatchCommit(checkout, patch, item.commit, parent, definitions))
        parent = item.commit
    return commits


def _decoded(contents: dict[str, bytes]) -> dict[str, str]:
    return {path: content.decode(errors="replace") for path, content in contents.items()}

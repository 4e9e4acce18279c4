"""A PyTorch checkout: find it and look at it. Nothing here writes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import git

from mpskit.checkout.git import (
    EXECUTABLE_FILE,
    REGULAR_FILE,
    Entry,
    Git,
    refuse_redirections,
)
from mpskit.errors import MpskitError

NATIVE_FUNCTIONS = "aten/src/ATen/native/native_functions.yaml"
# What tells a PyTorch tree from any other repository.
_MARKS = (NATIVE_FUNCTIONS, "torch")
_VERSION_FILE = "version.txt"

# Left in git's directory by a command that waits for the user: its name, how to end it.
_UNFINISHED = (
    ("rebase-apply/applying", "git am", "`git am --continue` or `git am --abort`"),
    ("rebase-apply", "rebase", "`git rebase --continue` or `git rebase --abort`"),
    ("rebase-merge", "rebase", "`git rebase --continue` or `git rebase --abort`"),
    ("MERGE_HEAD", "merge", "`git merge --continue` or `git merge --abort`"),
    ("CHERRY_PICK_HEAD", "cherry-pick", "`git cherry-pick --continue` or `--abort`"),
    ("REVERT_HEAD", "revert", "`git revert --continue` or `git revert --abort`"),
    ("sequencer", "cherry-pick or revert", "`git cherry-pick --continue` or `--abort`"),
    ("BISECT_LOG", "bisect", "`git bisect reset`"),
)


@dataclass(frozen=True)
class Head:
    """Where HEAD points: a commit, and the full ref name of the branch (None when detached)."""

    commit: str
    branch: str | None

    @property
    def name(self) -> str:
        """For people: the branch's short name, or the short commit."""
        if self.branch is None:
            return f"detached HEAD {self.commit[:12]}"
        return self.branch.removeprefix("refs/heads/")


@dataclass(frozen=True)
class UnfinishedCommand:
    """A git command that stopped half-way and waits for the user."""

    name: str
    how_to_end: str


@dataclass(frozen=True)
class DirtyPath:
    """A path whose work tree or index differs from HEAD; ``what`` is modified, staged, ..."""

    path: str
    what: str


class Checkout:
    """A PyTorch source tree in a git repository. Open one with ``Checkout.open``."""

    def __init__(self, root: Path, git_directory: Path, git: Git) -> None:
        self.root = root
        # A linked worktree has a git directory of its own; state of ours lives per worktree.
        self.git_directory = git_directory
        self.git = git

    @classmethod
    def open(cls, path: Path | str) -> Checkout:
        """The checkout that ``path`` (its root, or a directory inside) belongs to.

        Raises:
            MpskitError: there is none: no such directory, no git repository, a bare one, one
                without commits, or another project's.
        """
        refuse_redirections()
        repository = _find_repository(Path(path).expanduser())
        root = Path(str(repository.working_tree_dir))
        checkout = cls(root, Path(str(repository.git_dir)), Git(root))
        checkout._refuse_foreign_tree()
        return checkout

    def through(self, git: Git) -> Checkout:
        """The same checkout, looked at and written to through ``git``."""
        return Checkout(self.root, self.git_directory, git)

    def _refuse_foreign_tree(self) -> None:
        if self.git.resolve("HEAD^{commit}") is None:
            # Tells a repository that git will not touch from one without commits.
            self.git.run("rev-parse", "--git-dir")
            raise MpskitError(
                f"{self.root} has no commit yet.",
                hint="Name a PyTorch clone, or make a small one: mpskit skeleton DIR",
            )
        present = self.git.entries("HEAD", _MARKS)
        missing = [mark for mark in _MARKS if mark not in present]
        if missing:
            raise MpskitError(
                f"{self.root} is a git repository but no PyTorch checkout: looked for "
                f"{' and '.join(_MARKS)} in its HEAD; not there: {', '.join(missing)}.",
                hint="Name a PyTorch clone, or make a small one: mpskit skeleton DIR",
            )

    def head(self) -> Head:
        """The commit and branch that HEAD points to."""
        commit = self.git.line("rev-parse", "--verify", "HEAD^{commit}")
        return Head(commit, self.git.answer("symbolic-ref", "--quiet", "HEAD"))

    def read(self, tree: str, path: str) -> bytes | None:
        """The bytes of the regular file ``path`` in ``tree``, None where it has none."""
        return self.read_all(tree, [path]).get(path)

    def read_all(self, tree: str, paths: Iterable[str]) -> dict[str, bytes]:
        """The bytes of the regular files among ``paths`` in ``tree``."""
        ids = {
            path: entry.object_id
            for path, entry in self.git.entries(tree, paths).items()
            if entry.is_file
        }
        contents = self.git.contents(ids.values())
        return {path: contents[object_id] for path, object_id in ids.items()}

    def is_ancestor(self, ancestor: str, descendant: str) -> bool:
        """Whether the history of ``descendant`` holds the commit ``ancestor``."""
        return self.git.answer("merge-base", "--is-ancestor", ancestor, descendant) is not None

    def version(self) -> str | None:
        """What version.txt in HEAD says, None without one."""
        content = self.read("HEAD", _VERSION_FILE)
        return content.decode(errors="replace").strip() if content is not None else None

    def has(self, path: str) -> bool:
        """Whether HEAD has a file or directory ``path``."""
        return path in self.git.entries("HEAD", [path])

    def unfinished_command(self) -> UnfinishedCommand | None:
        """The rebase, merge, ... that the user is in the middle of."""
        for mark, name, how_to_end in _UNFINISHED:
            if (self.git_directory / mark).exists():
                return UnfinishedCommand(name, how_to_end)
        if self.git.fields("ls-files", "-z", "--unmerged"):
            return UnfinishedCommand("merge with conflicts", "`git add` on each resolved file")
        return None

    def rebase_in_progress(self) -> bool:
        """Whether a rebase waits for the user in this worktree."""
        return _has_rebase(self.git_directory)

    def branch_in_rebase(self) -> str | None:
        """Full ref name of the branch whose rebase waits for the user; None where none does."""
        for folder in ("rebase-merge", "rebase-apply"):
            name = self.git_directory / folder / "head-name"
            if name.is_file():
                return name.read_text(encoding="utf-8").strip()
        return None

    def rebase_anywhere(self) -> bool:
        """Whether a rebase waits for the user in any worktree of the repository."""
        common = Path(self.git.line("rev-parse", "--path-format=absolute", "--git-common-dir"))
        return any(map(_has_rebase, (common, *common.glob("worktrees/*"))))

    def refuse_unfinished_command(self) -> None:
        """Raise where ``unfinished_command`` finds one."""
        unfinished = self.unfinished_command()
        if unfinished:
            raise MpskitError(
                f"{self.root} is in the middle of a {unfinished.name}.",
                hint=f"End it first, with {unfinished.how_to_end}; then run the command again.",
            )

    def dirty(self, paths: Iterable[str]) -> list[DirtyPath]:
        """Those of ``paths`` at which the work tree or the index is not what HEAD has.

        An untracked or ignored file counts at a path that HEAD does not have.
        """
        wanted = list(paths)
        if not wanted:
            return []
        found = self._changes(wanted)
        found.update(self._hidden_changes(wanted))
        in_head = self.git.entries("HEAD", wanted)
        for path in wanted:
            if path not in in_head and path not in found and os.path.lexists(self.root / path):
                found[path] = "untracked"
        return [DirtyPath(path, found[path]) for path in wanted if path in found]

    def _changes(self, paths: list[str]) -> dict[str, str]:
        """By path, what `git status` says of tracked files, asked of ``paths`` alone."""
        lines = self.git.fields(
            "status",
            "--porcelain=v2",
            "-z",
            "--no-renames",
            "--untracked-files=no",
            "--ignore-submodules=all",
            "--",
            *paths,
        )
        return dict(map(_status_line, lines))

    def _hidden_changes(self, paths: list[str]) -> dict[str, str]:
        """Files that git was told not to look at, so that `git status` would miss a change."""
        found = {}
        for field in self.git.fields("ls-files", "-z", "-v", "--", *paths):
            tag, path = field.split(" ", 1)
            if tag.islower():
                found[path] = "assumed unchanged (git update-index --no-assume-unchanged)"
        return found

    def index_entries(self, paths: Iterable[str]) -> dict[str, Entry]:
        """What the index holds at each of ``paths``; missing ones are left out."""
        wanted = list(paths)
        if not wanted:
            return {}
        entries = {}
        for field in self.git.fields("ls-files", "-z", "--stage", "--", *wanted):
            details, path = field.split("\t", 1)
            mode, object_id, _stage = details.split(" ")
            entries[path] = Entry(mode, object_id)
        return entries

    def work_tree_entries(self, paths: Iterable[str], *, store: bool = False) -> dict[str, Entry]:
        """What committing the regular files among ``paths`` would store; writes them if asked."""
        files = [path for path in paths if _is_regular(self.root / path)]
        if not files:
            return {}
        names = "".join(f"{path}\n" for path in files)
        options = ["-w"] if store else []
        output = self.git.run("hash-object", *options, "--stdin-paths", stdin=os.fsencode(names))
        modes = [
            EXECUTABLE_FILE if (self.root / path).stat().st_mode & stat.S_IXUSR else REGULAR_FILE
            for path in files
        ]
        ids = output.decode().split()
        return {
            path: Entry(mode, object_id)
            for path, mode, object_id in zip(files, modes, ids, strict=True)
        }

    def refuse_dirty(self, paths: Iterable[str]) -> None:
        """Raise where one of ``paths`` has changes of the user's; names them."""
        dirty = self.dirty(paths)
        if dirty:
            named = ", ".join(f"{item.path} ({item.what})" for item in dirty)
            raise MpskitError(
                f"Changes of yours are in the way: {named}.",
                hint="Commit them, put them aside with `git stash -u`, or move them away; then run "
                "it again.",
            )

    def refuse_checked_out_elsewhere(self, branch: str) -> None:
        """Raise where another worktree of the repository has ``branch``, a full ref name."""
        where = self.git.line("for-each-ref", "--format=%(worktreepath)", branch)
        if where and Path(where).resolve() != self.root.resolve():
            raise MpskitError(
                f"Branch {branch.removeprefix('refs/heads/')} is checked out in {where}.",
                hint=f"Run the command there, or free the branch: git -C {where} checkout --detach",
            )

    def changed_paths(self, old: str, new: str) -> list[str]:
        """The paths at which two commits differ."""
        return self.git.fields("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)


def _has_rebase(git_directory: Path) -> bool:
    return any((git_directory / name).exists() for name in ("rebase-merge", "rebase-apply"))


def _is_regular(place: Path) -> bool:
    return not place.is_symlink() and place.is_file()


def _find_repository(path: Path) -> git.Repo:
    if not path.exists():
        raise MpskitError(
            f"{path} does not exist.",
            hint="Name a PyTorch clone, or make a small one: mpskit skeleton DIR",
        )
    if not path.is_dir():
        raise MpskitError(f"{path} is no directory.", hint="Name the checkout's root directory.")
    try:
        repository = git.Repo(path.resolve(), search_parent_directories=True)
    except git.exc.InvalidGitRepositoryError:
        raise MpskitError(
            f"{path} is no git repository.",
            hint="Name a PyTorch clone (`git clone URL`), or make a small one: mpskit skeleton DIR",
        ) from None
    if repository.bare:
        raise MpskitError(
            f"{path} is a bare repository: it has no work tree to patch.",
            hint=f"Make one: git -C {path} worktree add ../pytorch-mpskit",
        )
    return repository


_STATUS_WORDS: Mapping[str, str] = {
    "M": "modified",
    "T": "changed in type",
    "A": "added",
    "D": "deleted",
}


def _status_line(line: str) -> tuple[str, str]:
    """Path and description from a line of ``git status --porcelain=v2 --no-renames``."""
    if line.startswith("u "):
        return line.split(" ", 10)[10], "unmerged"
    fields = line.split(" ", 8)
    staged, unstaged = fields[1][0], fields[1][1]
    if unstaged != ".":
        return fields[8], _STATUS_WORDS.get(unstaged, "changed")
    return fields[8], f"{_STATUS_WORDS.get(staged, 'changed')} and staged"

"""Git's plumbing behind one small object: all commands go through ``Git.run``."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mpskit.errors import MpskitError

# GitPython refuses to be imported where git is missing; we want a sentence of our own instead.
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
import git

REGULAR_FILE = "100644"
EXECUTABLE_FILE = "100755"

# Settings of the user's that would run programs of theirs or reach beyond the files we change.
_SETTINGS = (
    f"core.hooksPath={os.devnull}",
    "submodule.recurse=false",
    "user.useConfigOnly=true",
    "advice.detachedHead=false",
    # Our commits and replayed ones are the user's to sign, when they have seen them.
    "commit.gpgSign=false",
    # Programs that git would leave running in the background, with our lock in their hands.
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
)
_ENVIRONMENT = {
    # `git status` must not rewrite the user's index on the side.
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
# Any of these sends git to another repository, index or object store than the path's own.
_REDIRECTIONS = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
)


@dataclass(frozen=True)
class Entry:
    """What a tree or the index holds at a path: file mode in octal, object id."""

    mode: str
    object_id: str

    @property
    def is_file(self) -> bool:
        """A regular file: no symbolic link, directory or submodule."""
        return self.mode in (REGULAR_FILE, EXECUTABLE_FILE)


@dataclass(frozen=True)
class RefChange:
    """A ref that goes from ``old`` to ``new``; None stands for "does not exist"."""

    name: str
    old: str | None
    new: str | None

    @property
    def reversed(self) -> RefChange:
        return RefChange(self.name, self.new, self.old)


class GitError(MpskitError):
    """A git command that failed, put into a sentence."""


_Error = TypeVar("_Error", bound=MpskitError)


class Git:
    """Runs git in ``directory``. Paths in and out are relative to the work tree's root."""

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self._environment = {**_ENVIRONMENT, **(environment or {})}
        self._git = git.Git(str(directory))

    def run(
        self, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> bytes:
        """Standard output of ``git ARGUMENTS``.

        Raises:
            GitError: it exits with anything but 0, or there is no git.
        """
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        try:
            process = self._git.execute(
                ["git", *settings, *arguments],
                istream=subprocess.PIPE,
                as_process=True,
                # Children hold the lock on: they can outlive us, where we are killed.
                close_fds=False,
                env={**self._environment, **(environment or {})},
            )
        except git.exc.GitCommandNotFound:
            raise GitError(
                "git is not installed, or not on the PATH.",
                hint="Install git 2.31 or newer and run the command again.",
            ) from None
        output, errors = _communicate(process, stdin)
        if process.returncode != 0:
            raise explain(self.directory, arguments, errors.decode(errors="replace"))
        return output

    def line(self, *arguments: str) -> str:
        """Standard output of ``git ARGUMENTS`` without its newline."""
        return os.fsdecode(self.run(*arguments)).rstrip("\n")

    def fields(self, *arguments: str) -> list[str]:
        """The NUL-separated fields that ``git ARGUMENTS`` (with ``-z``) prints."""
        return [field for field in os.fsdecode(self.run(*arguments)).split("\0") if field]

    def answer(self, *arguments: str) -> str | None:
        """As ``line``, but None where git says no by exiting with another status than 0."""
        try:
            return self.line(*arguments)
        except GitError:
            return None

    def resolve(self, revision: str) -> str | None:
        """The object id of ``revision``, None where there is no such thing."""
        return self.answer("rev-parse", "--verify", "--quiet", "--end-of-options", revision)

    def entries(self, tree: str, paths: Iterable[str]) -> dict[str, Entry]:
        """What ``tree`` (or a commit's) holds at each of ``paths``; missing ones are left out."""
        wanted = list(paths)
        if not wanted:
            return {}
        lines = self.fields("ls-tree", "-z", "--full-tree", tree, "--", *wanted)
        return dict(map(_tree_entry, lines))

    def contents(self, object_ids: Iterable[str]) -> dict[str, bytes]:
        """The bytes of each object, in one process."""
        wanted = list(dict.fromkeys(object_ids))
        if not wanted:
            return {}
        output = self.run("cat-file", "--batch", stdin="".join(f"{i}\n" for i in wanted).encode())
        return dict(zip(wanted, _batch_objects(output), strict=True))

    def write_blob(self, content: bytes) -> str:
        """Store ``content`` as it is, unchanged by any filter or line-end setting."""
        return os.fsdecode(self.run("hash-object", "-w", "--stdin", stdin=content)).strip()

    def write_tree(self, base: str, changes: Mapping[str, Entry | None]) -> str:
        """Store the tree that ``base`` becomes with ``changes``, where None deletes a path.

        It goes by way of a temporary index.
        """
        with tempfile.TemporaryDirectory(prefix="mpskit-index-") as directory:
            own_index = {"GIT_INDEX_FILE": str(Path(directory, "index"))}
            self.run("read-tree", base, environment=own_index)
            self.run(
                "update-index",
                "-z",
                "--index-info",
                stdin=index_information(changes),
                environment=own_index,
            )
            return os.fsdecode(self.run("write-tree", environment=own_index)).strip()

    def write_commit(
        self, tree: str, parents: Iterable[str], message: str, who: Mapping[str, str] | None = None
    ) -> str:
        """Store a commit; ``who`` holds GIT_AUTHOR_... and so on, the user by default."""
        parent_options = [part for parent in parents for part in ("-p", parent)]
        output = self.run(
            "commit-tree", tree, *parent_options, stdin=message.encode(), environment=who
        )
        return os.fsdecode(output).strip()

    def merge_contents(self, ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
        """What both sides made of ``base``, None where they changed the same lines."""
        with _merge_files(ours, base, theirs) as files:
            try:
                return self.run("merge-file", "--stdout", *files)
            except GitError:
                return None

    def conflict_marked(
        self, ours: bytes, base: bytes, theirs: bytes, labels: tuple[str, str]
    ) -> bytes:
        """As ``merge_contents``, with the lines that both changed between git's markers.

        ``labels`` name the sides of ours and theirs.
        """
        names = ("-L", labels[0], "-L", "base", "-L", labels[1])
        with _merge_files(ours, base, theirs) as files:
            # Exits with the number of conflicts, and has written the first file then.
            self.answer("merge-file", "--quiet", *names, *files)
            return Path(files[0]).read_bytes()

    def change_refs(self, changes: Iterable[RefChange], reason: str) -> None:
        """Carry out all of ``changes`` or none; each old value is checked."""
        lines = []
        for change in changes:
            if change.new is None:
                lines.append(f"delete {change.name}\0{change.old}\0")
            elif change.old is None:
                lines.append(f"create {change.name}\0{change.new}\0")
            else:
                lines.append(f"update {change.name}\0{change.new}\0{change.old}\0")
        if lines:
            self.run("update-ref", "-z", "-m", reason, "--stdin", stdin=os.fsencode("".join(lines)))

    @contextmanager
    def scratch(self) -> Iterator[Git]:
        """The same repository, with what is written kept elsewhere and thrown away at the end."""
        objects = Path(self.line("rev-parse", "--path-format=absolute", "--git-path", "objects"))
        with (
            disk_errors_explained(Path(tempfile.gettempdir())),
            tempfile.TemporaryDirectory(prefix="mpskit-objects-") as directory,
        ):
            yield Git(
                self.directory,
                {
                    "GIT_OBJECT_DIRECTORY": directory,
                    "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
                },
            )


def refuse_redirections() -> None:
    """Refuse to work where the environment points git away from the checkout it is given."""
    for name in _REDIRECTIONS:
        if name in os.environ:
            raise MpskitError(
                f"{name} is set in the environment and would send git to another place.",
                hint=f"Run the command without it: env -u {name} mpskit ...",
            )


def index_information(changes: Mapping[str, Entry | None]) -> bytes:
    """Input for ``git update-index -z --index-info``; None takes the path out of the index."""
    lines = []
    for path, entry in changes.items():
        what = f"{entry.mode} {entry.object_id}" if entry else f"0 {'0' * 40}"
        lines.append(f"{what}\t{path}\0")
    return os.fsencode("".join(lines))


def _communicate(process: git.Git.AutoInterrupt, stdin: bytes) -> tuple[bytes, bytes]:
    try:
        output, errors = process.communicate(stdin)
    except BaseException:
        # What to undo after an interrupt is only known once git has stopped.
        process.communicate()
        raise
    return output, errors


@contextmanager
def _merge_files(*contents: bytes) -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory(prefix="mpskit-merge-") as directory:
        files = [Path(directory, name) for name in ("ours", "base", "theirs")]
        for file, content in zip(files, contents, strict=True):
            file.write_bytes(content)
        yield [str(file) for file in files]


def _tree_entry(line: str) -> tuple[str, Entry]:
    details, path = line.split("\t", 1)
    mode, _kind, object_id = details.split(" ")
    return path, Entry(mode, object_id)


def _batch_objects(output: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(output):
        header_end = output.index(b"\n", position)
        size = int(output[position:header_end].split(b" ")[2])
        yield output[header_end + 1 : header_end + 1 + size]
        position = header_end + 1 + size + 1


_DISK_FULL = re.compile(
    r"No space left on device|Disk quota exceeded|Out of diskspace", re.IGNORECASE
)
_NO_PERMISSION = re.compile(r"Read-only file system|Permission denied|insufficient permission")
_LOCKED = re.compile(r"Unable to create '(?P<lock>[^']+\.lock)': File exists")
# What git needs at the very least for an object, a ref and their locks, in bytes.
_LITTLE_SPACE = 64 * 1024
_NOT_OWNED = re.compile(r"detected dubious ownership")


def explain(directory: Path, arguments: Iterable[str], errors: str) -> GitError:
    """The sentence for a git command that printed ``errors`` and failed."""
    if _DISK_FULL.search(errors):
        return _full_disk(GitError, directory)
    if _NO_PERMISSION.search(errors):
        return _not_writable(GitError, directory)
    if _NOT_OWNED.search(errors):
        return GitError(
            f"{directory} belongs to another user, and git will not work in it.",
            hint=f"If you trust it: git config --global --add safe.directory {directory}",
        )
    locked = _LOCKED.search(errors)
    if locked:
        return GitError(
            f"Another git command is at work in {directory}, or one crashed there.",
            hint=f"Wait for it to end; if none is running, delete {locked.group('lock')}",
        )
    if _is_nearly_full(directory):
        # Not every message of git's says so: a ref's lock just "couldn't" be written.
        return _full_disk(GitError, directory)
    said = [line for line in errors.strip().splitlines() if line.strip()]
    command = next((word for word in arguments if not word.startswith("-")), "")
    return GitError(
        f"git {command} failed in {directory}: {said[-1].strip() if said else 'no reason given'}",
        hint="`git fsck` tells whether the repository is damaged.",
    )


def explain_os_error(error: OSError, directory: Path) -> MpskitError | None:
    """The sentence for a full disk or missing permission; None for what is a fault of ours.

    ``directory`` is named where the error itself does not say which file it was.
    """
    if error.filename is not None:
        directory = Path(os.fsdecode(error.filename)).parent
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _full_disk(MpskitError, directory)
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return _not_writable(MpskitError, directory)
    return None


@contextmanager
def disk_errors_explained(directory: Path) -> Iterator[None]:
    """Turn a full disk or a lack of permission inside the block into a sentence."""
    try:
        yield
    except OSError as error:
        explained = explain_os_error(error, directory)
        if explained is None:
            raise
        raise explained from error


def _is_nearly_full(directory: Path) -> bool:
    with suppress(OSError):
        return shutil.disk_usage(directory).free < _LITTLE_SPACE
    return False


def _full_disk(kind: type[_Error], directory: Path) -> _Error:
    return kind(
        f"The disk that holds {directory} is full.",
        hint="Free some space and run the command again.",
    )


def _not_writable(kind: type[_Error], directory: Path) -> _Error:
    return kind(
        f"{directory} is read-only, or its files belong to another user.",
        hint="Give yourself write access to it, .git included, or work on a clone of your own.",
    )

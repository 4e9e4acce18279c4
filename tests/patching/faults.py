"""Ways to break an operation at each of its steps, and checkouts to break it on."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import stat
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest
from checkouts import SERIES, Snapshot, write_files
from series_case import KERNEL, TEST, THIRD, SeriesTestCase

from mpskit.checkout import Checkout, Git, transaction
from mpskit.errors import MpskitError
from mpskit.patching import apply, load_patch_set, refresh, refreshing, revert, update

Fault = Callable[[], None]


def interrupt() -> None:
    raise KeyboardInterrupt


def full_disk() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Steps:
    """Counts the steps of an operation, every git command and file written, and breaks one."""

    def __init__(self, fault: Fault | None = None, at: int = -1, after: bool = False) -> None:
        self.fault = fault
        self.at = at
        self.after = after
        self.names: list[str] = []

    def step(self, name: str, act: Callable[[], object]) -> object:
        self.names.append(name)
        breaks = self.fault is not None and len(self.names) == self.at + 1
        if breaks and not self.after:
            self.fault()
        try:
            return act()
        finally:
            if breaks and self.after:
                self.fault()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        run, write, replace = Git.run, transaction._write_atomically, refreshing._replace

        def watched_run(git: Git, *arguments: str, **options: object) -> object:
            command = next(word for word in arguments if word[0] != "-" and "=" not in word)
            return self.step(f"git {command}", lambda: run(git, *arguments, **options))

        def watched_write(path: Path, text: str) -> object:
            return self.step("journal", lambda: write(path, text))

        def watched_replace(place: Path, content: bytes) -> object:
            return self.step("patch set", lambda: replace(place, content))

        with (
            mock.patch.object(Git, "run", watched_run),
            mock.patch.object(transaction, "_write_atomically", watched_write),
            mock.patch.object(refreshing, "_replace", watched_replace),
        ):
            yield


class FaultTestCase(SeriesTestCase):
    """A checkout with a series of patches, and operations on it that go wrong."""

    @pytest.fixture(autouse=True)
    def _report(self, record_property: Callable[[str, object], None]) -> None:
        # tests/patching/conftest.py adds these up and prints the sum.
        self.report_faults = lambda kind, count: record_property(f"faults: {kind}", count)

    series = (SERIES, THIRD)

    def setUp(self) -> None:
        super().setUp()
        self.saved = self.directory / "saved"
        # A commit's id holds its time; here the same commit made twice is the same.
        dates = {f"GIT_{role}_DATE": "2001-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}
        self.enterContext_(mock.patch.dict(os.environ, dates))

    def prepare(self, operation: str) -> Callable[[], None]:
        """Bring the checkout to where ``operation`` has something to do; gives what does it."""
        if operation != "apply":
            self.apply()
        if operation in ("update", "conflict"):
            self.commit({"mine.txt": "mine\n"}, "My own work")
            write_files(self.patch_set, {TEST: "two = 2\n", KERNEL: "kernel void better() {}\n"})
        if operation == "conflict":
            self.commit({TEST: "mine = 1\n"}, "My test")
        if operation == "refresh":
            self.commit({TEST: "mine = 1\n"}, "My test")
            write_files(self.root, {KERNEL: "kernel void edited() {}\n", TEST: "mine = 2\n"})
            self.git("add", TEST)
        if operation != "conflict":
            self.leave_other_work()
        act = {
            "apply": lambda checkout: apply(checkout, load_patch_set(self.patch_set)),
            "update": lambda checkout: update(checkout, load_patch_set(self.patch_set)),
            "conflict": lambda checkout: update(checkout, load_patch_set(self.patch_set)),
            "refresh": lambda checkout: refresh(checkout, load_patch_set(self.patch_set)),
            "revert": revert,
        }[operation]
        return lambda: act(Checkout.open(self.root))

    def leave_other_work(self) -> None:
        """Work of the user's beside the patch: a staged file, a changed one, a new one."""
        write_files(
            self.root, {"README.md": "staged\n", "version.txt": "changed\n", "new.txt": "new\n"}
        )
        self.git("add", "README.md")

    def state(self) -> Snapshot:
        return Snapshot.take(self.root).without_stat_cache()

    def count(self, operation: Callable[[], None]) -> list[str]:
        steps = Steps()
        with steps.watched(), contextlib.suppress(MpskitError):
            operation()
        return steps.names

    def save(self) -> None:
        """Keep the checkout and the patch set as they are now, for ``put_back``."""
        for place in (self.root, self.patch_set):
            shutil.copytree(place, self.saved / place.name, symlinks=True)

    def put_back(self) -> None:
        self.put_back_patch_set()
        shutil.rmtree(self.root)
        shutil.copytree(self.saved / self.root.name, self.root, symlinks=True)
        self.git("update-index", "-q", "--really-refresh")

    def put_back_patch_set(self) -> None:
        shutil.rmtree(self.patch_set)
        shutil.copytree(self.saved / self.patch_set.name, self.patch_set, symlinks=True)


class CrashTestCase(FaultTestCase):
    def crash(self, operation: Callable[[], None], at: int, late: bool) -> None:
        """Run ``operation`` in a process of its own that is killed at a step."""
        self.killed(lambda: Steps(die, at, late).watched(), operation)

    def killed(
        self,
        prepare: Callable[[], contextlib.AbstractContextManager[None]],
        operation: Callable[[], None],
    ) -> None:
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException), prepare():
                operation()
            os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), -signal.SIGKILL)

    def recover(self) -> None:
        with transaction.Transaction.begin(Checkout.open(self.root), "test"):
            pass


def rewrite(path: Path, text: str) -> None:
    path.write_text(textwrap.dedent(text))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)

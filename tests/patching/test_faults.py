# ruff: noqa: E501 (expected output stands as it is printed)
"""Whatever fails or dies at whichever step, nothing of the user's is lost."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest
from checkouts import ACTIVATION, SERIES, CheckoutTestCase, Snapshot, write_files
from test_update import KERNEL, TEST, THIRD, SeriesTestCase

from mpskit.checkout import Checkout, Git, transaction
from mpskit.errors import MpskitError
from mpskit.patching import apply, load_patch_set, refresh, refreshing, revert, update
from mpskit.patching.record import settle_pending

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


class FailureTest(FaultTestCase):
    """Each step in turn is interrupted or meets a full disk: all is as before at once."""

    def faults(self, names: list[str]) -> Iterator[tuple[int, Fault, bool]]:
        """Every step with a way to break it; once the first file is written, with all four."""
        for at, name in enumerate(names):
            if at < names.index("journal") and name != "patch set":
                yield (at, full_disk, True) if at % 2 else (at, interrupt, False)
            else:
                yield from itertools.product([at], [interrupt, full_disk], [False, True])

    def walk(self, name: str) -> None:
        operation = self.prepare(name)
        self.save()
        names = self.count(operation)
        after = self.state()
        self.put_back()
        before = Snapshot.take(self.root)
        first_write = names.index("git checkout" if "git checkout" in names else "journal")
        count = 0
        for at, fault, late in self.faults(names):
            count += 1
            with self.subTest(step=names[at], at=at, fault=fault.__name__, late=late):
                with (
                    Steps(fault, at, late).watched(),
                    self.assertRaises((KeyboardInterrupt, OSError, MpskitError)),
                ):
                    operation()
                now = Snapshot.take(self.root)
                if at < first_write:
                    self.assertEqual(now, before)
                self.assertEqual(now.without_stat_cache(), before.without_stat_cache())
            self.put_back_patch_set()
        operation()
        self.assertEqual(self.state(), after)
        self.report_faults(f"{name} interrupted, or on a full disk", count)
        self.assertGreater(count, 30)

    def test_apply(self) -> None:
        self.walk("apply")

    def test_update(self) -> None:
        self.walk("update")

    def test_refresh(self) -> None:
        self.walk("refresh")

    def test_revert(self) -> None:
        self.walk("revert")


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


class CrashTest(CrashTestCase):
    """Killed with no chance to clean up: the next run finds all as before, or complete."""

    def walk(self, name: str) -> None:
        operation = self.prepare(name)
        self.save()
        before = self.state()
        names = self.count(operation)
        after = self.state()
        self.put_back()
        found = {"as before": 0, "complete": 0}
        for at in range(len(names)):
            for late in (False, True) if at >= names.index("journal") else (False,):
                self.crash(operation, at, late)
                self.recover()
                self.put_back_patch_set()
                now = self.state()
                if now == before:
                    found["as before"] += 1
                    continue
                self.assertEqual(now, after)
                found["complete"] += 1
                self.put_back()
        # Only after the last step, when nothing is left but to forget the journal.
        self.assertEqual(found["complete"], 1)
        self.report_faults(f"{name} killed", sum(found.values()))
        self.assertGreater(found["as before"], 20)

    def test_apply(self) -> None:
        self.walk("apply")

    def test_update(self) -> None:
        self.walk("update")

    def test_refresh(self) -> None:
        self.walk("refresh")

    def test_revert(self) -> None:
        self.walk("revert")

    def test_a_refresh_that_died_is_finished_by_the_next(self) -> None:
        operation = self.prepare("refresh")
        self.save()
        names = self.count(operation)
        after, files = self.state(), self.patch_set_files()
        for at, name in enumerate(names):
            if name in ("patch set", "journal"):
                self.put_back()
                self.crash(operation, at, late=True)
                operation()
                self.assertEqual(self.state(), after)
                self.assertEqual(self.patch_set_files(), files)

    def patch_set_files(self) -> dict[str, bytes]:
        files = (path for path in self.patch_set.rglob("*") if path.is_file())
        return {str(path.relative_to(self.patch_set)): path.read_bytes() for path in files}

    def test_an_update_that_stops_at_a_conflict(self) -> None:
        operation = self.prepare("conflict")
        self.save()
        before = self.state()
        names = self.count(operation)
        self.put_back()
        count = 0
        for at in range(names.index("git rebase") - 6, len(names)):
            for late in (False, True):
                count += 1
                self.crash(operation, at, late)
                if (self.root / ".git" / "rebase-merge").exists():
                    self.git("rebase", "--abort")
                with transaction.Transaction.begin(Checkout.open(self.root), "test"):
                    settle_pending(Checkout.open(self.root))
                now = self.state()
                for part in ("head", "refs", "index", "work_tree"):
                    self.assertEqual(getattr(now, part), getattr(before, part), names[at])
        self.report_faults("update killed at a conflict", count)


class OrphanTest(CrashTestCase):
    """mpskit is killed while a git of its is at work, and that git carries on to its end."""

    @contextlib.contextmanager
    def killing_git(self, at: int) -> Iterator[None]:
        """Put a git on the PATH that kills its parent in the ``at``-th call, then does its job."""
        tools, real = self.directory / "killing", os.environ["PATH"]
        tools.mkdir(exist_ok=True)
        calls = tools / "calls"
        calls.write_text("")
        rewrite(
            tools / "git",
            f"""\
            #!/bin/sh
            echo >> '{calls}'
            if [ "$(wc -l < '{calls}')" -eq {at + 1} ]; then kill -9 $PPID; sleep 0.1; fi
            PATH='{real}' exec git "$@"
            """,
        )
        with mock.patch.dict(os.environ, {"PATH": f"{tools}:{real}"}):
            yield

    def recover(self) -> None:
        for _ in range(100):
            try:
                return super().recover()
            except MpskitError as error:
                # Its lock outlives it, in the hands of the git that it started.
                self.assertIn("is at work in", error.message)
                time.sleep(0.05)
        return self.fail("the lock is never given back")

    def walk(self, name: str) -> None:
        operation = self.prepare(name)
        self.save()
        before = self.state()
        names = self.count(operation)
        after = self.state()
        self.put_back()
        # From the last objects on; what comes before only reads.
        steps = range(names.index("journal") - 6, len(names))
        gits = [names[:at].count("journal") + names[:at].count("patch set") for at in steps]
        count = 0
        for at, others in zip(steps, gits, strict=True):
            if names[at].startswith("git "):
                count += 1
                self.killed(lambda nth=at - others: self.killing_git(nth), operation)
                self.recover()
                self.put_back_patch_set()
                if self.state() != before:
                    self.assertEqual(self.state(), after, names[at])
                    self.put_back()
        self.report_faults(f"{name} killed while git runs", count)
        self.assertGreater(count, 5)

    def test_apply(self) -> None:
        self.walk("apply")

    def test_update(self) -> None:
        self.walk("update")

    def test_refresh(self) -> None:
        self.walk("refresh")

    def test_revert(self) -> None:
        self.walk("revert")


class FullDiskTest(FaultTestCase):
    def test_a_disk_that_is_full_in_earnest(self) -> None:
        disk = self.directory / "disk"
        disk.mkdir()
        mount = f"mount -t tmpfs -o size=3m none '{disk}'"
        command = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
        if shutil.which("unshare") is None or subprocess.run([*command, mount]).returncode != 0:
            self.skipTest("needs the right to mount a disk; the other tests only say it is full")
        script = Path(__file__).parent / "small_disk.py"
        result = subprocess.run(
            [*command, f"{mount} && exec '{sys.executable}' '{script}' '{disk}'"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        for name, count in json.loads(result.stdout.splitlines()[-1]).items():
            self.assertGreater(count, 0)
            self.report_faults(f"{name} on a disk that is full in earnest", count)


class AfterACrashTest(CrashTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.apply_here = self.prepare("apply")
        self.save()

    def test_status_tells_of_it_and_the_next_run_leaves_a_head_that_moved_on(self) -> None:
        names = self.count(self.apply_here)
        self.put_back()
        self.crash(self.apply_here, names.index("git checkout"), late=True)
        options = ("--patch-set", self.patch_set)
        self.assertIn("was interrupted", self.mpskit("status", self.root, *options).output)
        self.git("checkout", "--quiet", "HEAD~0")
        self.assertExpectedInline(
            str(self.apply()),
            """\
an interrupted `mpskit apply` was left as it is, since HEAD has moved on
already applied on detached HEAD ID: nothing to do
exit code 0
""",
        )

    def test_a_journal_cut_short_is_thrown_away(self) -> None:
        before = self.state()
        write_files(self.root, {".git/mpskit/journal.new": '{"oper'})
        self.recover()
        self.assertEqual(self.state(), before)

    def test_a_journal_that_nobody_can_read_is_left_to_the_user(self) -> None:
        write_files(self.root, {".git/mpskit/journal.json": "{}"})
        before = Snapshot.take(self.root)
        outcome = self.apply()
        self.assert_refused(outcome, before)
        self.assertExpectedInline(
            str(outcome),
            """\
error: DIR/pytorch/.git/mpskit/journal.json, the record of an interrupted run, cannot be read.
  next: Look at `git status`, put right what is not, and delete that file.
exit code 1
""",
        )

    def test_what_the_user_wrote_since_is_left_alone(self) -> None:
        names = self.count(self.apply_here)
        self.put_back()
        self.crash(self.apply_here, names.index("git checkout"), late=True)
        write_files(self.root, {KERNEL: "my own words\n"})
        self.assertExpectedInline(
            str(self.mpskit("revert", self.root)),
            """\
an interrupted `mpskit apply` was undone first
  left as it is: aten/src/ATen/native/mps/kernels/Square.metal, which has changed since
nothing is applied: nothing to do
exit code 0
""",
        )
        self.assertEqual((self.root / KERNEL).read_text(), "my own words\n")
        self.assertEqual(self.git("status", "--porcelain", "--branch").splitlines()[0], "## main")


def rewrite(path: Path, text: str) -> None:
    path.write_text(textwrap.dedent(text))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


class FakeGitTest(CheckoutTestCase):
    """A git that fails as it does on a full or read-only disk, at the commands that write."""

    def break_git(self, command: str, says: str) -> None:
        real = os.environ["PATH"]
        tools = self.directory / "tools"
        tools.mkdir(exist_ok=True)
        rewrite(
            tools / "git",
            f"""\
            #!/bin/sh
            PATH='{real}'
            for word in "$@"; do
              if [ "$word" = {command} ]; then echo "{says}" >&2; exit 128; fi
            done
            exec git "$@"
            """,
        )
        self.enterContext_(mock.patch.dict(os.environ, {"PATH": f"{tools}:{real}"}))

    def test_a_full_disk(self) -> None:
        before = Snapshot.take(self.root)
        self.break_git("hash-object", "fatal: unable to write file: No space left on device")
        outcome = self.apply()
        self.assert_refused(outcome, before)
        self.assertExpectedInline(
            str(outcome),
            """\
error: The disk that holds DIR/pytorch is full.
  next: Free some space and run the command again.
exit code 1
""",
        )

    def test_a_disk_that_fills_while_files_are_written(self) -> None:
        before = Snapshot.take(self.root)
        self.break_git("checkout", "error: unable to write file x: No space left on device")
        self.assert_refused(self.apply(), before)

    def test_a_read_only_repository(self) -> None:
        before = Snapshot.take(self.root)
        self.break_git(
            "hash-object",
            "error: insufficient permission for adding an object to repository database",
        )
        outcome = self.apply()
        self.assert_refused(outcome, before)
        self.assertExpectedInline(
            str(outcome),
            """\
error: DIR/pytorch is read-only, or its files belong to another user.
  next: Give yourself write access to it, .git included, or work on a clone of your own.
exit code 1
""",
        )

    def test_another_users_repository(self) -> None:
        before = Snapshot.take(self.root)
        self.break_git("rev-parse", "fatal: detected dubious ownership in repository at 'x'")
        outcome = self.apply()
        self.assert_refused(outcome, before)
        self.assertExpectedInline(
            str(outcome),
            """\
error: DIR/pytorch belongs to another user, and git will not work in it.
  next: If you trust it: git config --global --add safe.directory DIR/pytorch
exit code 1
""",
        )

    def test_a_failure_that_nobody_foresaw(self) -> None:
        before = Snapshot.take(self.root)
        self.break_git("write-tree", "fatal: something odd")
        outcome = self.apply()
        self.assert_refused(outcome, before)
        self.assertExpectedInline(
            str(outcome),
            """\
error: git write-tree failed in DIR/pytorch: fatal: something odd
  next: `git fsck` tells whether the repository is damaged.
exit code 1
""",
        )

    def test_a_directory_that_cannot_be_written_to(self) -> None:
        before = Snapshot.take(self.root)
        denied = OSError(errno.EROFS, "Read-only file system")
        with mock.patch.object(Path, "mkdir", side_effect=denied):
            outcome = self.apply()
        self.assert_refused(outcome, before)
        self.assertExpectedInline(
            str(outcome),
            """\
error: DIR/pytorch is read-only, or its files belong to another user.
  next: Give yourself write access to it, .git included, or work on a clone of your own.
exit code 1
""",
        )


class UndoFailsTest(CheckoutTestCase):
    def test_it_is_said_and_the_next_run_puts_everything_back(self) -> None:
        before = Snapshot.take(self.root).without_stat_cache()
        run = Git.run

        def full_disk_for_files(git: Git, *arguments: str, **options: object) -> bytes:
            if arguments[0] == "checkout":
                (self.root / ACTIVATION).unlink()
            if arguments[0] in ("checkout", "checkout-index"):
                raise OSError(errno.ENOSPC, "No space left on device")
            return run(git, *arguments, **options)

        with mock.patch.object(Git, "run", full_disk_for_files):
            self.assertExpectedInline(
                str(self.apply()),
                """\
error: The disk that holds DIR/pytorch is full. Undoing what was begun did not work either: The disk that holds DIR/pytorch is full.
  next: Mend that; then run `mpskit revert`, which puts everything back.
exit code 1
""",
            )
        self.assertFalse((self.root / ACTIVATION).exists())
        self.assertExpectedInline(
            str(self.mpskit("revert", self.root)),
            """\
an interrupted `mpskit apply` was undone first
nothing is applied: nothing to do
exit code 0
""",
        )
        self.assertEqual(Snapshot.take(self.root).without_stat_cache(), before)


class InterruptTest(CheckoutTestCase):
    def test_the_command_says_so_and_exits_with_130(self) -> None:
        before = Snapshot.take(self.root)
        with Steps(interrupt, 12).watched():
            outcome = self.apply()
        self.assertEqual(str(outcome), "\ninterrupted\nexit code 130\n")
        self.assertEqual(Snapshot.take(self.root), before)

    def test_git_stopped_half_way_through_the_files(self) -> None:
        before = Snapshot.take(self.root).without_stat_cache()
        run = Git.run

        def half_way(git: Git, *arguments: str, **options: object) -> bytes:
            if arguments[0] != "checkout":
                return run(git, *arguments, **options)
            write_files(self.root, {KERNEL: "kernel void squ"})
            (self.root / ACTIVATION).unlink()
            raise KeyboardInterrupt

        with mock.patch.object(Git, "run", half_way):
            self.assertEqual(self.apply().exit_code, 130)
        self.assertEqual(Snapshot.take(self.root).without_stat_cache(), before)

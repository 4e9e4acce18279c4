# ruff: noqa: E501 (expected output stands as it is printed)
"""Whatever fails or dies at whichever step, nothing of the user's is lost."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import signal
import stat
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from checkouts import ACTIVATION, CheckoutTestCase, Snapshot, write_files

from mpskit.checkout import Checkout, Git, transaction
from mpskit.errors import MpskitError
from mpskit.patching import apply, load_patch_set, revert

KERNEL = "aten/src/ATen/native/mps/kernels/Square.metal"

Fault = Callable[[], None]


def interrupt() -> None:
    raise KeyboardInterrupt


def full_disk() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Steps:
    """Counts the steps of an operation, every git command and journal write, and breaks one."""

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
        run, write = Git.run, transaction._write_atomically

        def watched_run(git: Git, *arguments: str, **options: object) -> object:
            return self.step(f"git {arguments[0]}", lambda: run(git, *arguments, **options))

        def watched_write(path: Path, text: str) -> object:
            return self.step("journal", lambda: write(path, text))

        with (
            mock.patch.object(Git, "run", watched_run),
            mock.patch.object(transaction, "_write_atomically", watched_write),
        ):
            yield


class FaultTestCase(CheckoutTestCase):
    def setUp(self) -> None:
        super().setUp()
        # Work of the user's beside the patch: a staged file, a changed one, a new one.
        write_files(
            self.root, {"README.md": "staged\n", "version.txt": "changed\n", "new.txt": "new\n"}
        )
        self.git("add", "README.md")
        self.loaded = load_patch_set(self.patch_set)
        # A commit's id holds its time; here the same commit made twice is the same.
        dates = {f"GIT_{role}_DATE": "2001-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}
        self.enterContext_(mock.patch.dict(os.environ, dates))

    def apply_here(self) -> None:
        apply(Checkout.open(self.root), self.loaded)

    def revert_here(self) -> None:
        revert(Checkout.open(self.root))

    def state(self) -> Snapshot:
        return Snapshot.take(self.root).without_stat_cache()

    def count(self, operation: Callable[[], None]) -> list[str]:
        steps = Steps()
        with steps.watched():
            operation()
        return steps.names

    def faults(self, names: list[str]) -> Iterator[tuple[int, Fault, bool]]:
        """Every step with the ways to break it: two before anything is written, then all four."""
        for at in range(len(names)):
            if at < names.index("journal"):
                yield from ((at, interrupt, False), (at, full_disk, True))
            else:
                yield from itertools.product([at], [interrupt, full_disk], [False, True])

    def walk(self, operation: Callable[[], None], back: Callable[[], None]) -> int:
        """Break each step of ``operation`` in turn; ``back`` undoes a run that came through."""
        names = self.count(operation)
        after = self.state()
        back()
        before = Snapshot.take(self.root)
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
                if at < names.index("git checkout"):
                    self.assertEqual(now, before)
                self.assertEqual(now.without_stat_cache(), before.without_stat_cache())
        operation()
        self.assertEqual(self.state(), after)
        return count


class FailureTest(FaultTestCase):
    def test_apply_that_fails_leaves_the_checkout_as_it_was(self) -> None:
        self.assertGreater(self.walk(self.apply_here, self.revert_here), 60)

    def test_revert_that_fails_leaves_the_checkout_as_it_was(self) -> None:
        self.apply_here()
        self.assertGreater(self.walk(self.revert_here, self.apply_here), 30)


class CrashTest(FaultTestCase):
    """Killed with no chance to clean up: the next run finds all as before, or complete."""

    def crash(self, operation: Callable[[], None], at: int, late: bool) -> None:
        """Run ``operation`` in a process of its own that is killed at a step."""
        child = os.fork()
        if child == 0:
            with Steps(die, at, late).watched():
                operation()
            os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), -signal.SIGKILL)

    def recover(self) -> None:
        with transaction.Transaction.begin(Checkout.open(self.root), "test"):
            pass

    def walk_crashes(
        self, operation: Callable[[], None], back: Callable[[], None]
    ) -> dict[str, int]:
        before = self.state()
        names = self.count(operation)
        after = self.state()
        back()
        found = {"as before": 0, "complete": 0}
        for at in range(len(names)):
            for late in (False, True) if at >= names.index("journal") else (False,):
                self.crash(operation, at, late)
                self.recover()
                now = self.state()
                if now == before:
                    found["as before"] += 1
                else:
                    self.assertEqual(now, after)
                    found["complete"] += 1
                    back()
        return found

    def test_apply(self) -> None:
        found = self.walk_crashes(self.apply_here, self.revert_here)
        self.assertGreater(found["as before"], 30)
        # Only after the last step, when nothing is left but to forget the journal.
        self.assertEqual(found["complete"], 1)

    def test_revert(self) -> None:
        self.apply_here()
        found = self.walk_crashes(self.revert_here, self.apply_here)
        self.assertGreater(found["as before"], 20)
        self.assertEqual(found["complete"], 1)

    def test_status_tells_of_it_and_the_next_run_leaves_a_head_that_moved_on(self) -> None:
        names = self.count(self.apply_here)
        self.revert_here()
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
        self.revert_here()
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

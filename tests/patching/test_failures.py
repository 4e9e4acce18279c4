# ruff: noqa: E501 (expected output stands as it is printed)
"""What is said, and done, about what was interrupted, killed or refused by the disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from unittest import mock

from checkouts import ACTIVATION, CheckoutTestCase, Snapshot, write_files
from faults import CrashTestCase, Steps, interrupt, rewrite
from series_case import KERNEL

from mpskit.checkout import Git


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

"""Checkouts as people have them: every kind of clone, settings and files beside the patch."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from checkouts import ACTIVATION, TREE, Snapshot, make_checkout, run_git, write_files
from series_case import BRANCH, HOST, KERNEL, TEST, SeriesTestCase

from mpskit.checkout.lock import exclusive


class RoundTripTestCase(SeriesTestCase):
    def round_trip(self) -> None:
        """Apply, update, refresh and revert; the user has everything as before in the end."""
        before, status = Snapshot.take(self.root), self.git("status", "--porcelain")
        self.succeed("apply", "--patch-set", self.patch_set)
        self.assertEqual(self.git("status", "--porcelain"), status)
        self.assertIn("square_mps_out", self.git("show", f"HEAD:{HOST}"))
        self.assertNotIn("square_mps_out", self.git("show", f"HEAD:{ACTIVATION}"))
        write_files(self.patch_set, {TEST: "two = 2\n"})
        self.succeed("apply", "--update", "--patch-set", self.patch_set)
        self.assertEqual(self.git("show", f"HEAD:{TEST}"), "two = 2\n")
        if (self.root / TEST).exists():
            write_files(self.root, {TEST: "three = 3\n"})
            self.succeed("refresh", "--patch-set", self.patch_set)
            self.assertEqual(self.git("show", f"HEAD:{TEST}"), "three = 3\n")
        self.assertEqual(self.git("status", "--porcelain"), status)
        self.succeed("revert")
        now = Snapshot.take(self.root)
        self.assertEqual(now.without_stat_cache(), before.without_stat_cache())

    def succeed(self, command: str, *options: str | Path) -> None:
        outcome = self.mpskit(command, self.root, *options)
        self.assertEqual(outcome.exit_code, 0, outcome.output)

    def clone(self, *options: str) -> None:
        origin = self.root
        run_git(origin, "config", "uploadpack.allowFilter", "true")
        self.root = self.directory / "clone"
        run_git(self.directory, "clone", "--quiet", *options, f"file://{origin}", str(self.root))


class CloneTest(RoundTripTestCase):
    def test_shallow(self) -> None:
        self.commit({"README.md": "newer\n"})
        self.clone("--depth=1")
        self.assertEqual(len(self.git("rev-list", "HEAD").split()), 1)
        self.round_trip()

    def test_partial_without_file_contents(self) -> None:
        self.commit({"README.md": "newer\n"})
        self.clone("--filter=blob:none", "--no-checkout")
        self.git("sparse-checkout", "set", "torch")
        self.git("checkout", "--quiet", "main")
        self.assertFalse((self.root / ACTIVATION).exists())
        self.round_trip()

    def test_sparse_without_the_files_that_are_patched(self) -> None:
        self.git("sparse-checkout", "set", "torch")
        self.round_trip()
        self.assertFalse((self.root / ACTIVATION).exists())

    def test_sparse_with_the_files_that_are_patched(self) -> None:
        self.git("sparse-checkout", "set", "aten")
        self.round_trip()
        self.assertFalse((self.root / "torch").exists())

    def test_with_the_objects_of_another(self) -> None:
        self.clone("--shared")
        self.round_trip()
        self.assertEqual(self.apply("--dry-run").exit_code, 0)

    def test_packed(self) -> None:
        self.git("gc", "--quiet")
        self.round_trip()

    def test_detached(self) -> None:
        self.git("checkout", "--quiet", "--detach")
        self.round_trip()

    def test_a_linked_worktree_of_a_bare_repository(self) -> None:
        bare = self.directory / "bare.git"
        run_git(self.directory, "clone", "--quiet", "--bare", str(self.root), str(bare))
        self.root = self.directory / "tree"
        run_git(bare, "worktree", "add", "--quiet", "-b", "side", str(self.root))
        self.succeed("apply", "--patch-set", self.patch_set)
        write_files(self.root, {TEST: "two = 2\n"})
        self.succeed("refresh", "--patch-set", self.patch_set)
        self.succeed("revert")
        self.assertEqual(self.git("status", "--porcelain", "--branch"), "## side\n")

    def test_behind_a_link(self) -> None:
        link = self.directory / "link"
        link.symlink_to(self.root)
        self.root = link
        self.round_trip()

    def test_a_path_with_spaces_and_letters_beyond_ascii(self) -> None:
        self.root = self.root.rename(self.directory / "my PyTörch ✓")
        self.patch_set = self.patch_set.rename(self.directory / "my pätches")
        self.round_trip()


class SubmoduleTest(RoundTripTestCase):
    def test_the_users_work_in_one_stays(self) -> None:
        library = self.directory / "library"
        make_checkout(library, {"lib.h": "one\n", "README.md": "a library\n"})
        allow = ("-c", "protocol.file.allow=always")
        self.git(*allow, "submodule", "--quiet", "add", str(library), "third_party/library")
        self.git("commit", "--quiet", "-m", "A submodule")
        for setting in ("submodule.recurse", "push.recurseSubmodules"):
            self.git("config", setting, "true" if "submodule" in setting else "check")
        inside = self.root / "third_party" / "library"
        write_files(inside, {"lib.h": "mine\n"})
        run_git(
            inside, "-c", "user.name=T", "-c", "user.email=t@x", "commit", "--quiet", "-am", "Mine"
        )
        write_files(inside, {"lib.h": "unsaved\n"})
        self.round_trip()
        self.assertEqual((inside / "lib.h").read_text(), "unsaved\n")


class FilesTest(RoundTripTestCase):
    def test_line_ends_converted_by_git(self) -> None:
        self.git("config", "core.autocrlf", "true")
        for path in TREE:
            (self.root / path).unlink()
        self.git("checkout", "--quiet", "--", ".")
        self.assertIn(b"\r\n", (self.root / ACTIVATION).read_bytes())
        self.succeed("apply", "--patch-set", self.patch_set)
        self.assertNotIn("\r", self.git("show", f"HEAD:{ACTIVATION}"))
        self.assertEqual(self.git("status", "--porcelain"), "")
        text = (self.root / TEST).read_bytes()
        self.assertEqual(text, b"one = 1\r\n")
        (self.root / TEST).write_bytes(b"two = 2\r\n")
        self.succeed("refresh", "--patch-set", self.patch_set)
        self.assertEqual((self.patch_set / TEST).read_bytes(), b"two = 2\n")
        self.succeed("revert")
        self.assertEqual(self.git("status", "--porcelain"), "")

    def test_attributes_that_convert_line_ends(self) -> None:
        self.commit({".gitattributes": "*.mm text eol=crlf\n"})
        self.git("rm", "--quiet", "--cached", "-r", ".")
        self.git("reset", "--quiet", "--hard")
        self.assertIn(b"\r\n", (self.root / ACTIVATION).read_bytes())
        self.round_trip()

    def test_modes_stay(self) -> None:
        (self.root / ACTIVATION).chmod(0o755)
        self.git("commit", "--quiet", "--all", "-m", "Executable")
        self.succeed("apply", "--patch-set", self.patch_set)
        self.assertTrue((self.root / ACTIVATION).stat().st_mode & stat.S_IXUSR)
        self.succeed("revert")
        self.round_trip()

    def test_a_mode_that_the_user_changed_is_in_the_way(self) -> None:
        (self.root / ACTIVATION).chmod(0o755)
        before = Snapshot.take(self.root)
        outcome = self.apply()
        self.assert_refused(outcome, before)
        self.assertIn(f"{ACTIVATION} (modified)", outcome.output)

    def test_a_folder_behind_a_link_is_not_written_into(self) -> None:
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        (self.root / "test").symlink_to(elsewhere)
        before = Snapshot.take(self.root)
        outcome = self.apply()
        self.assert_refused(outcome, before)
        self.assertEqual(list(elsewhere.iterdir()), [])

    def test_an_ignored_build_folder_is_not_touched(self) -> None:
        self.commit({".gitignore": "build/\n__pycache__/\n"})
        build = {f"build/{n}.o": f"object {n}\n" for n in range(50)}
        write_files(self.root, {**build, "test/__pycache__/x.pyc": "compiled\n"})
        times = {path: (self.root / path).stat().st_mtime_ns for path in build}
        self.round_trip()
        self.assertEqual({path: (self.root / path).stat().st_mtime_ns for path in build}, times)

    def test_staged_and_intended_changes_elsewhere(self) -> None:
        write_files(
            self.root, {"README.md": "staged\n", "new.txt": "new\n", "later.txt": "later\n"}
        )
        self.git("add", "README.md", "new.txt")
        self.git("add", "--intent-to-add", "later.txt")
        write_files(self.root, {"README.md": "and changed again\n"})
        self.git("rm", "--quiet", "--cached", "version.txt")
        self.round_trip()


class SettingsTest(RoundTripTestCase):
    def test_hooks_do_not_run(self) -> None:
        hooks = self.directory / "hooks"
        names = "pre-commit commit-msg post-checkout post-commit post-rewrite reference-transaction"
        for name in names.split():
            hook = hooks / name
            write_files(hooks, {name: f"#!/bin/sh\ntouch '{self.directory}/ran'\nexit 1\n"})
            hook.chmod(0o755)
        self.git("config", "core.hooksPath", str(hooks))
        self.round_trip_without_git()
        self.assertFalse((self.directory / "ran").exists())

    def round_trip_without_git(self) -> None:
        """As ``round_trip``, but no git of the test's own runs in between."""
        self.succeed("apply", "--patch-set", self.patch_set)
        write_files(self.patch_set, {TEST: "two = 2\n"})
        self.succeed("apply", "--update", "--patch-set", self.patch_set)
        write_files(self.root, {TEST: "three = 3\n"})
        self.succeed("refresh", "--patch-set", self.patch_set)
        self.succeed("revert")

    def test_no_signature_is_asked_for(self) -> None:
        self.git("config", "commit.gpgSign", "true")
        self.git("config", "gpg.program", "/bin/false")
        self.round_trip()

    def test_settings_that_change_what_commands_do(self) -> None:
        for setting in (
            "core.untrackedCache=true", "core.quotePath=true",
            "status.showUntrackedFiles=all", "status.renames=copies", "diff.noprefix=true",
            "diff.mnemonicPrefix=true", "color.ui=always", "checkout.defaultRemote=origin",
            "index.version=4", "feature.manyFiles=true", "log.showSignature=true",
            "merge.conflictStyle=zdiff3", "rebase.autoStash=true", "push.default=nothing",
            "log.date=relative", "format.pretty=fuller", "core.logAllRefUpdates=false",
        ):  # fmt: skip
            name, value = setting.split("=")
            self.git("config", name, value)
        self.round_trip()


class OtherUserTest(RoundTripTestCase):
    def test_a_checkout_of_another_users(self) -> None:
        before = Snapshot.take(self.root)
        # git's own switch for tests; it then takes every directory for somebody else's.
        with mock.patch.dict(os.environ, {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}):
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

    def test_a_tree_that_cannot_be_written_to(self) -> None:
        self.git("config", "--global", "safe.directory", "*")
        self.apply()
        self.git("checkout", "--quiet", "main")
        self.directory.chmod(0o755)
        before = Snapshot.take(self.root)
        for name in ("apply", "apply --update", "refresh", "revert"):
            with self.subTest(name), self.read_only():
                command, *options = name.split()
                if command != "revert":
                    options += ["--patch-set", str(self.patch_set)]
                code, said = self.as_nobody(
                    lambda c=command, o=options: self.mpskit(c, self.root, *o)
                )
                self.assertEqual(code, 1, said)
                self.assertRegex(said, r"is read-only|is no branch that mpskit")
            self.assertEqual(Snapshot.take(self.root), before)

    @contextlib.contextmanager
    def read_only(self) -> None:
        places = [self.root, *self.root.rglob("*")]
        modes = {place: place.stat().st_mode for place in places if not place.is_symlink()}
        for place, mode in modes.items():
            place.chmod(mode & ~0o222 | 0o444 | (0o111 if place.is_dir() else 0))
        try:
            yield
        finally:
            for place, mode in modes.items():
                place.chmod(mode)

    def as_nobody(self, act: Callable[[], object]) -> tuple[int, str]:
        """Run ``act`` in a process without root's right to write everywhere; what it came to."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            outcome = act()
            os.write(writer, outcome.output.encode())
            os._exit(outcome.exit_code)
        os.close(writer)
        with os.fdopen(reader) as stream:
            said = stream.read()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


class ConcurrencyTest(RoundTripTestCase):
    def test_each_command_names_the_holder_of_the_lock(self) -> None:
        self.apply()
        with exclusive(self.root / ".git" / "mpskit", "update", self.root):
            before = Snapshot.take(self.root)
            for name in ("apply", "apply --update", "refresh", "revert"):
                command, *options = name.split()
                if command != "revert":
                    options += ["--patch-set", str(self.patch_set)]
                outcome = self.mpskit(command, self.root, *options)
                self.assert_refused(outcome, before)
                self.assertIn(
                    f"mpskit update, process {os.getpid()} on {socket.gethostname()}, is at work",
                    outcome.output,
                )

    def test_a_directory_that_its_last_holder_removes_just_now_is_made_again(self) -> None:
        directory, opened = self.root / ".git" / "mpskit", os.open

        def removed_first(path: Path, *options: int) -> int:
            if directory.exists() and not removals:
                removals.append(directory.rmdir())
            return opened(path, *options)

        removals: list[None] = []
        with (
            mock.patch("mpskit.checkout.lock.os.open", removed_first),
            exclusive(directory, "update", self.root),
        ):
            self.assertTrue((directory / "lock").exists())
        self.assertEqual(len(removals), 1)
        self.assertFalse(directory.exists())

    def test_several_at_once_come_to_one_result(self) -> None:
        command = [sys.executable, "-m", "mpskit", "apply", str(self.root)]
        command += ["--patch-set", str(self.patch_set)]
        runs = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for _ in range(4)
        ]
        said = [run.communicate()[0] for run in runs]
        for text in said:
            self.assertTrue(re.search(r"^applied on|^already applied|is at work in", text), text)
        self.assertEqual(sum(text.startswith("applied on") for text in said), 1)
        self.assertEqual(self.git("branch", "--show-current").strip(), BRANCH)
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertEqual(len(self.ids()), 3)
        self.assertTrue((self.root / KERNEL).exists())

# ruff: noqa: E501, W293 (expected output stands as it is printed)
from __future__ import annotations

import json
import os
import socket
import stat
import textwrap
from unittest import mock

from checkouts import (
    ACTIVATION,
    NATIVE_FUNCTIONS,
    OPERATIONS,
    SERIES,
    TREE,
    CheckoutTestCase,
    Snapshot,
    make_checkout,
    run_git,
    write_files,
)

KERNEL = "aten/src/ATen/native/mps/kernels/Square.metal"
BRANCH = "mpskit/square"


class ApplyTest(CheckoutTestCase):
    def test_the_commit_is_the_patch_and_nothing_else(self) -> None:
        self.assertEqual(self.apply().exit_code, 0)
        self.assertExpectedInline(
            self.neutral(
                self.git("log", "-1", "--format=%an <%ae>%n%B", "--patch", "--no-renames")
            ),
            """\
Tester <tester@example.com>
[MPS] Move square to Metal

It is faster there.


diff --git a/aten/src/ATen/native/mps/kernels/Square.metal b/aten/src/ATen/native/mps/kernels/Square.metal
new file mode 100644
index ID..ID
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Square.metal
@@ -0,0 +1 @@
+kernel void square() {}
diff --git a/aten/src/ATen/native/mps/operations/Activation.mm b/aten/src/ATen/native/mps/operations/Activation.mm
index ID..ID 100644
--- a/aten/src/ATen/native/mps/operations/Activation.mm
+++ b/aten/src/ATen/native/mps/operations/Activation.mm
@@ -7,14 +7,6 @@ Tensor neighbour_before(const Tensor& self) {
   return self;
 }
 
-// The square of each element.
-TORCH_IMPL_FUNC(square_mps_out)(const Tensor& self, const Tensor& out) {
-  const char* text = "}";
-  if (self.numel() == 0) {
-    return;
-  }
-}
-
 Tensor neighbour_after(const Tensor& self) {
   return self;
 }
diff --git a/aten/src/ATen/native/mps/operations/Square.mm b/aten/src/ATen/native/mps/operations/Square.mm
new file mode 100644
index ID..ID
--- /dev/null
+++ b/aten/src/ATen/native/mps/operations/Square.mm
@@ -0,0 +1,2 @@
+TORCH_IMPL_FUNC(square_mps_out)(const Tensor& self, const Tensor& out) {
+}
""",
        )
        self.assertEqual(self.git("status", "--porcelain", "--branch"), f"## {BRANCH}\n")
        self.assertEqual(stat.S_IMODE((self.root / KERNEL).stat().st_mode) & 0o111, 0)

    def test_twice_is_once(self) -> None:
        self.apply()
        before = Snapshot.take(self.root)
        self.assertExpectedInline(
            str(self.apply()),
            """\
already applied on mpskit/square: nothing to do
exit code 0
""",
        )
        self.assertEqual(Snapshot.take(self.root), before)

    def test_from_the_base_again_goes_to_the_branch(self) -> None:
        self.apply()
        applied = Snapshot.take(self.root)
        self.git("checkout", "--quiet", "main")
        self.assertIn("already applied", self.apply().output)
        self.assertEqual(
            Snapshot.take(self.root).without_stat_cache(), applied.without_stat_cache()
        )

    def test_a_tree_that_has_it_already_gets_no_branch(self) -> None:
        self.apply()
        self.git("branch", "--quiet", "-m", BRANCH, "renamed")
        self.assertIn("already applied on renamed", self.apply().output)
        self.assertNotIn(BRANCH, self.git("branch", "--list"))

    def test_other_work_of_the_users_stays(self) -> None:
        write_files(
            self.root,
            {"README.md": "staged\n", "version.txt": "unstaged\n", "new.txt": "untracked\n"},
        )
        self.git("add", "README.md")
        before = self.git("status", "--porcelain")
        self.assertEqual(self.apply().exit_code, 0)
        self.assertEqual(self.git("status", "--porcelain"), before)
        self.assertEqual(self.mpskit("revert", self.root).exit_code, 0)
        self.assertEqual(self.git("status", "--porcelain"), before)

    def test_hooks_do_not_run(self) -> None:
        hooks = self.root / ".git" / "hooks"
        hooks.mkdir()
        for name in ("post-checkout", "pre-commit", "reference-transaction"):
            (hooks / name).write_text(f"#!/bin/sh\ntouch {self.directory}/ran\nexit 1\n")
            (hooks / name).chmod(0o755)
        self.assertEqual(self.apply().exit_code, 0)
        self.assertEqual(self.mpskit("revert", self.root).exit_code, 0)
        self.assertFalse((self.directory / "ran").exists())

    def test_windows_line_ends_stay(self) -> None:
        text = (self.root / ACTIVATION).read_bytes().replace(b"\n", b"\r\n")
        self.commit({ACTIVATION: text})
        self.assertEqual(self.apply().exit_code, 0)
        content = (self.root / ACTIVATION).read_bytes()
        self.assertEqual(content.count(b"\n"), content.count(b"\r\n"))
        self.assertNotIn(b"square_mps_out", content)

    def test_a_path_with_spaces_and_letters_beyond_ascii(self) -> None:
        self.root = self.root.rename(self.directory / "my PyTörch")
        self.assertEqual(self.apply().exit_code, 0)
        self.assertEqual(self.mpskit("revert", self.root).exit_code, 0)

    def test_a_linked_worktree(self) -> None:
        main = Snapshot.take(self.root)
        tree = self.directory / "linked"
        self.git("worktree", "add", "--quiet", "-b", "side", str(tree))
        with mock.patch.object(self, "root", tree):
            self.assertEqual(self.apply().exit_code, 0)
            self.assertEqual(self.mpskit("revert", tree).exit_code, 0)
            self.assertEqual(self.git("status", "--porcelain", "--branch"), "## side\n")
        self.assertEqual(Snapshot.take(self.root).work_tree, main.work_tree)

    def test_a_subdirectory_stands_for_its_checkout(self) -> None:
        outcome = self.mpskit("apply", self.root / "torch", "--patch-set", self.patch_set)
        self.assertEqual(outcome.exit_code, 0)

    def test_patches_stack_and_the_next_sees_the_last_ones_text(self) -> None:
        second = """
            [[patch]]
            name = "cube"
            title = "[MPS] Build on square"

            [[patch.edit]]
            kind = "insert_after"
            path = "aten/src/ATen/native/mps/operations/Square.mm"
            anchor = "const Tensor& out) {\\n"
            text = "  // cube\\n"
            """
        write_files(self.patch_set, {"series.toml": SERIES.strip() + "\n" + second})
        series = (self.patch_set / "series.toml").read_text()
        (self.patch_set / "series.toml").write_text(
            "\n".join(line.strip() for line in series.splitlines())
        )
        self.assertEqual(self.apply().exit_code, 0)
        self.assertEqual(
            self.git("log", "--format=%s", "main..HEAD"),
            "[MPS] Build on square\n[MPS] Move square to Metal\n",
        )
        self.assertIn("// cube", (self.root / OPERATIONS / "Square.mm").read_text())


class InsertedTextTest(CheckoutTestCase):
    """An edit whose text is a file of the patch set, in a file that a base may lack."""

    EDITS = """

        [[patch.edit]]
        kind = "insert_before"
        path = "test/test_mps.py"
        anchor = "class TestPad:"
        text_from = "inserts/test_square.py"
        optional = true
        """

    def setUp(self) -> None:
        super().setUp()
        series = textwrap.dedent(SERIES) + textwrap.dedent(self.EDITS)
        text = "class TestSquare:\n    pass\n\n\n"
        write_files(self.patch_set, {"series.toml": series, "inserts/test_square.py": text})

    def test_it_goes_in_and_out_again(self) -> None:
        tests = self.root / "test/test_mps.py"
        write_files(self.root, {"test/test_mps.py": "class TestPad:\n    pass\n"})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Tests")
        self.assertEqual(self.apply().exit_code, 0)
        self.assertEqual(
            tests.read_text(), "class TestSquare:\n    pass\n\n\nclass TestPad:\n    pass\n"
        )
        self.assertIn("already applied", str(self.apply()))
        self.assertEqual(self.mpskit("revert", self.root).exit_code, 0)
        self.assertEqual(tests.read_text(), "class TestPad:\n    pass\n")

    def test_a_base_without_the_file_does_without(self) -> None:
        status = self.mpskit("status", self.root, "--patch-set", self.patch_set)
        self.assertIn("(left out: the base has no such file)", status.output)
        self.assertEqual(self.apply().exit_code, 0)
        self.assertFalse((self.root / "test/test_mps.py").exists())
        self.assertIn("already applied", str(self.apply()))

    def test_what_is_wrong_with_it_is_named(self) -> None:
        series = (self.patch_set / "series.toml").read_text()
        for old, new, why in (
            ("inserts/test_square.py", "inserts/none.py", "inserts/none.py cannot be read"),
            ("optional = true", 'optional = "yes"', "must be true or false"),
            ("optional = true", 'text = "x"', "`patch[0].edit[1].text` is no key"),
        ):
            with self.subTest(why):
                (self.patch_set / "series.toml").write_text(series.replace(old, new))
                outcome = self.apply()
                self.assertEqual(outcome.exit_code, 1)
                self.assertIn(why, str(outcome))


class RefusedApplyTest(CheckoutTestCase):
    """Bad input: a sentence, a next step, exit code 1, and the checkout as it was."""

    def refuse(self, *options: str) -> str:
        before = Snapshot.take(self.root)
        outcome = self.apply(*options)
        self.assert_refused(outcome, before)
        self.assertEqual(outcome.exit_code, 1)
        return outcome.output

    def test_changes_in_the_way(self) -> None:
        write_files(self.root, {ACTIVATION: "mine\n", KERNEL: "mine\n", "README.md": "mine\n"})
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Changes of yours are in the way: aten/src/ATen/native/mps/operations/Activation.mm (modified), aten/src/ATen/native/mps/kernels/Square.metal (untracked).
  next: Commit them, put them aside with `git stash -u`, or move them away; then run it again.
""",
        )

    def test_staged_changes_in_the_way(self) -> None:
        write_files(self.root, {ACTIVATION: "mine\n", KERNEL: "mine\n"})
        self.git("add", "--all")
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Changes of yours are in the way: aten/src/ATen/native/mps/operations/Activation.mm (modified and staged), aten/src/ATen/native/mps/kernels/Square.metal (added and staged).
  next: Commit them, put them aside with `git stash -u`, or move them away; then run it again.
""",
        )

    def test_an_ignored_file_in_the_way(self) -> None:
        self.commit({".gitignore": "*.metal\n"})
        write_files(self.root, {KERNEL: "mine\n"})
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Changes of yours are in the way: aten/src/ATen/native/mps/kernels/Square.metal (untracked).
  next: Commit them, put them aside with `git stash -u`, or move them away; then run it again.
""",
        )

    def test_a_file_that_git_was_told_not_to_look_at(self) -> None:
        self.git("update-index", "--assume-unchanged", ACTIVATION)
        write_files(self.root, {ACTIVATION: "mine\n"})
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Changes of yours are in the way: aten/src/ATen/native/mps/operations/Activation.mm (assumed unchanged (git update-index --no-assume-unchanged)).
  next: Commit them, put them aside with `git stash -u`, or move them away; then run it again.
""",
        )

    def test_in_the_middle_of_something(self) -> None:
        self.commit({"README.md": "one\n"}, "One")
        self.git("checkout", "--quiet", "-b", "side", "main~1")
        self.commit({"README.md": "two\n"}, "Two")
        said = []
        for command in ("rebase main", "merge main", "cherry-pick main", "revert main"):
            with self.assertRaises(Exception):  # noqa: B017
                self.git(*command.split())
            said.append(self.refuse())
            self.git(command.split()[0], "--abort")
        self.git("bisect", "start")
        said.append(self.refuse())
        self.git("bisect", "reset")
        self.git("format-patch", "-1", "--output-directory", str(self.directory), "main")
        with self.assertRaises(Exception):  # noqa: B017
            self.git("am", str(self.directory / "0001-One.patch"))
        said.append(self.refuse())
        self.git("am", "--abort")
        self.assertExpectedInline(
            "".join(said),
            """\
error: DIR/pytorch is in the middle of a rebase.
  next: End it first, with `git rebase --continue` or `git rebase --abort`; then run the command again.
error: DIR/pytorch is in the middle of a merge.
  next: End it first, with `git merge --continue` or `git merge --abort`; then run the command again.
error: DIR/pytorch is in the middle of a cherry-pick.
  next: End it first, with `git cherry-pick --continue` or `--abort`; then run the command again.
error: DIR/pytorch is in the middle of a revert.
  next: End it first, with `git revert --continue` or `git revert --abort`; then run the command again.
error: DIR/pytorch is in the middle of a bisect.
  next: End it first, with `git bisect reset`; then run the command again.
error: DIR/pytorch is in the middle of a git am.
  next: End it first, with `git am --continue` or `git am --abort`; then run the command again.
""",
        )

    def test_conflicts_that_a_stash_left(self) -> None:
        write_files(self.root, {"README.md": "stashed\n"})
        self.git("stash", "--quiet")
        self.commit({"README.md": "other\n"})
        with self.assertRaises(Exception):  # noqa: B017
            self.git("stash", "pop")
        self.assertExpectedInline(
            self.refuse(),
            """\
error: DIR/pytorch is in the middle of a merge with conflicts.
  next: End it first, with `git add` on each resolved file; then run the command again.
""",
        )

    def test_the_branch_is_taken(self) -> None:
        self.git("branch", BRANCH)
        self.assertExpectedInline(
            self.refuse(),
            """\
error: There is a branch mpskit/square already, and mpskit did not make it.
  next: Give the patch set another branch with --branch NAME.
""",
        )

    def test_a_branch_stands_where_a_directory_would(self) -> None:
        self.git("branch", "mpskit")
        self.assertExpectedInline(
            self.refuse(),
            """\
error: There is a branch mpskit already, and mpskit did not make it.
  next: Give the patch set another branch with --branch NAME.
""",
        )

    def test_branches_stand_where_the_branch_would(self) -> None:
        self.git("branch", "mine/one")
        self.assertExpectedInline(
            self.refuse("--branch", "mine"),
            """\
error: There is a branch mine/one already, and mpskit did not make it.
  next: Give the patch set another branch with --branch NAME.
""",
        )

    def test_a_name_that_no_branch_can_have(self) -> None:
        self.assertExpectedInline(
            self.refuse("--branch", "a..b"),
            """\
error: 'a..b' cannot be the name of a branch.
  next: Give another --branch NAME.
""",
        )

    def test_applied_on_another_base(self) -> None:
        self.apply()
        self.git("checkout", "--quiet", "main")
        self.commit({"README.md": "moved on\n"})
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Branch mpskit/square carries this patch set on another base, ID.
  next: Bring it here with `mpskit apply --update`, remove it with `mpskit revert --branch mpskit/square`, or give --branch NAME.
""",
        )

    def test_another_version_of_the_patch_set(self) -> None:
        self.apply()
        write_files(self.patch_set, {KERNEL: "kernel void square() { /* better */ }\n"})
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Branch mpskit/square carries another version of the patch set.
  next: Bring it to this one with `mpskit apply --update`.
""",
        )

    def test_an_old_base(self) -> None:
        self.git("rm", "--quiet", "-r", "c10")
        self.git("commit", "--quiet", "-m", "Older")
        self.assertExpectedInline(
            self.refuse(),
            """\
error: This base is too old for patch square: no c10/metal/utils.h: the kernels include it.
  next: Check out PyTorch 2.7 or newer, or go on regardless with --allow-old-base.
""",
        )
        self.assertEqual(self.apply("--allow-old-base").exit_code, 0)

    def test_the_definition_is_gone(self) -> None:
        self.commit({ACTIVATION: "namespace at::native {}\n"})
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Patch square does not fit this base: looked for the definition of TORCH_IMPL_FUNC(square_mps_out) in aten/src/ATen/native/mps/operations/Activation.mm and in aten/src/ATen/native/mps/operations/Square.mm, and neither has it.
  next: `mpskit status` shows each edit; upstream may have moved this code, so look for a newer patch set.
""",
        )

    def test_the_file_is_gone(self) -> None:
        self.git("rm", "--quiet", ACTIVATION)
        self.git("commit", "--quiet", "-m", "Gone")
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Patch square does not fit this base: the base has no aten/src/ATen/native/mps/operations/Activation.mm.
  next: `mpskit status` shows each edit; upstream may have moved this code, so look for a newer patch set.
""",
        )

    def test_upstream_has_a_file_of_that_name(self) -> None:
        self.commit({KERNEL: "upstream's\n"})
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Patch square does not fit this base: the base has its own aten/src/ATen/native/mps/kernels/Square.metal, with another text.
  next: `mpskit status` shows each edit; upstream may have moved this code, so look for a newer patch set.
""",
        )

    def test_the_file_is_a_symbolic_link(self) -> None:
        (self.root / ACTIVATION).unlink()
        (self.root / ACTIVATION).symlink_to("Other.mm")
        self.git("commit", "--quiet", "--all", "-m", "A link")
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Patch square does not fit this base: aten/src/ATen/native/mps/operations/Activation.mm is no regular file in the base.
  next: `mpskit status` shows each edit; upstream may have moved this code, so look for a newer patch set.
""",
        )

    def test_the_op_is_dispatched_elsewhere(self) -> None:
        text = (self.root / NATIVE_FUNCTIONS).read_text()
        self.commit({NATIVE_FUNCTIONS: text.replace("square_mps_out", "square_out_mps")})
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Patch square does not fit this base: _square.out must dispatch MPS to square_mps_out, and native_functions.yaml says square_out_mps.
  next: `mpskit status` shows each edit; upstream may have moved this code, so look for a newer patch set.
""",
        )

    def test_another_mpskit_is_at_work(self) -> None:
        from mpskit.checkout.lock import exclusive

        directory = self.root / ".git" / "mpskit"
        with exclusive(directory, "apply", self.root):
            before = Snapshot.take(self.root)
            outcome = self.apply()
            self.assert_refused(outcome, before)
        output = outcome.output.replace(str(os.getpid()), "PID")
        self.assertExpectedInline(
            output.replace(socket.gethostname(), "HOST"),
            """\
error: mpskit apply, process PID on HOST, is at work in DIR/pytorch.
  next: Wait for it to end and run it again.
""",
        )

    def test_what_a_crash_left_of_a_lock_is_no_obstacle(self) -> None:
        write_files(
            self.root, {".git/mpskit/lock": '{"pid": 1, "host": "h", "operation": "apply"}'}
        )
        self.assertEqual(self.apply().exit_code, 0)
        self.assertFalse((self.root / ".git" / "mpskit").exists())

    def test_another_git_is_at_work(self) -> None:
        write_files(self.root, {".git/index.lock": ""})
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Another git command is at work in DIR/pytorch, or one crashed there.
  next: Wait for it to end; if none is running, delete DIR/pytorch/.git/index.lock
""",
        )

    def test_dry_run_refuses_alike_and_writes_nothing(self) -> None:
        before = Snapshot.take(self.root)
        objects = self.git("count-objects")
        self.assertEqual(self.apply("--dry-run").exit_code, 0)
        self.assertEqual(Snapshot.take(self.root), before)
        self.assertEqual(self.git("count-objects"), objects)
        self.git("branch", BRANCH)
        self.assertIn("There is a branch", self.refuse("--dry-run"))


class NoIdentityTest(CheckoutTestCase):
    identity = ""

    def test_the_two_commands_that_help(self) -> None:
        before = Snapshot.take(self.root)
        objects = self.git("count-objects")
        outcome = self.apply()
        self.assert_refused(outcome, before)
        self.assertExpectedInline(
            str(outcome),
            """\
error: git does not know your name and address, which a commit needs.
  next: git config --global user.name "Your Name" && git config --global user.email you@example.com
exit code 1
""",
        )
        self.assertEqual(self.git("count-objects"), objects)


class RevertTest(CheckoutTestCase):
    def revert(self, *options: str) -> str:
        return str(self.mpskit("revert", self.root, *options))

    def refuse(self, *options: str) -> str:
        before = Snapshot.take(self.root)
        outcome = self.mpskit("revert", self.root, *options)
        self.assert_refused(outcome, before)
        return outcome.output

    def test_everything_is_as_before(self) -> None:
        before = Snapshot.take(self.root).without_stat_cache()
        self.apply()
        self.assertExpectedInline(
            self.revert(),
            """\
deleted branch mpskit/square; now on main
exit code 0
""",
        )
        self.assertEqual(Snapshot.take(self.root).without_stat_cache(), before)
        self.assertExpectedInline(
            self.revert(),
            """\
nothing is applied: nothing to do
exit code 0
""",
        )

    def test_a_detached_head_is_detached_again(self) -> None:
        self.git("checkout", "--quiet", "--detach")
        before = Snapshot.take(self.root).without_stat_cache()
        self.apply()
        self.assertExpectedInline(
            self.revert(),
            """\
deleted branch mpskit/square; now on detached HEAD ID
exit code 0
""",
        )
        self.assertEqual(Snapshot.take(self.root).without_stat_cache(), before)

    def test_a_branch_that_moved_on_is_taken_where_it_is(self) -> None:
        self.apply()
        self.git("checkout", "--quiet", "main")
        self.commit({"README.md": "moved on\n"})
        self.git("checkout", "--quiet", BRANCH)
        self.revert()
        self.assertEqual(self.git("log", "-1", "--format=%s %D"), "A change HEAD -> main\n")

    def test_a_branch_that_is_gone_leaves_its_commit(self) -> None:
        base = self.git("rev-parse", "HEAD")
        self.apply()
        self.git("branch", "--quiet", "-D", "main")
        self.assertIn("now on detached HEAD", self.revert())
        self.assertEqual(self.git("rev-parse", "HEAD"), base)

    def test_from_another_branch_only_the_branch_goes(self) -> None:
        self.apply()
        self.git("checkout", "--quiet", "-b", "mine", "main")
        self.assertIn("now on mine", self.revert())
        self.assertEqual(self.git("branch", "--list", BRANCH), "")

    def test_commits_that_would_be_lost(self) -> None:
        self.apply()
        self.commit({"README.md": "mine\n"}, "My own work")
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Branch mpskit/square has commits that would be lost: ID My own work.
  next: Keep them with `git branch NEW-NAME mpskit/square`, then run the command again.
""",
        )
        self.git("branch", "kept", BRANCH)
        self.assertIn("deleted branch", self.revert())
        self.assertEqual(self.git("log", "-1", "--format=%s", "kept"), "My own work\n")

    def test_an_amended_commit_would_be_lost(self) -> None:
        self.apply()
        self.git("commit", "--quiet", "--amend", "-m", "My words")
        self.assertIn("My words", self.refuse())

    def test_changes_in_the_way(self) -> None:
        self.apply()
        write_files(self.root, {KERNEL: "mine\n", "README.md": "mine\n"})
        self.assertExpectedInline(
            self.refuse(),
            """\
error: Changes of yours are in the way: aten/src/ATen/native/mps/kernels/Square.metal (modified).
  next: Commit them, put them aside with `git stash -u`, or move them away; then run it again.
""",
        )

    def test_several_branches(self) -> None:
        self.apply()
        self.git("checkout", "--quiet", "main")
        self.apply("--branch", "second")
        self.git("checkout", "--quiet", "main")
        self.assertExpectedInline(
            self.refuse(),
            """\
error: mpskit made several branches: mpskit/square, second.
  next: Say which one: --branch NAME.
""",
        )
        self.assertIn("deleted branch second", self.revert("--branch", "second"))
        self.assertIn(f"deleted branch {BRANCH}", self.revert())

    def test_a_branch_that_mpskit_did_not_make(self) -> None:
        self.assertExpectedInline(
            self.refuse("--branch", "main"),
            """\
error: mpskit has applied nothing on a branch main.
  next: `mpskit status` names the branches that it made.
""",
        )

    def test_a_branch_deleted_by_hand_is_no_obstacle(self) -> None:
        self.apply()
        self.git("checkout", "--quiet", "main")
        self.git("branch", "--quiet", "-D", BRANCH)
        self.assertIn("nothing is applied", self.revert())
        self.assertEqual(self.apply().exit_code, 0)

    def test_a_record_of_another_kind(self) -> None:
        self.apply()
        blob = self.git("hash-object", "-w", "version.txt").strip()
        self.git("update-ref", f"refs/mpskit/applied/{BRANCH}", blob)
        self.assertExpectedInline(
            self.refuse(),
            """\
error: refs/mpskit/applied/mpskit/square is no record that this mpskit can read.
  next: Use the mpskit that applied the patch set, or delete that ref and the branch.
""",
        )


class JsonTest(CheckoutTestCase):
    def test_apply_and_revert_for_programs(self) -> None:
        options = ("--patch-set", str(self.patch_set), "--json")
        applied = json.loads(self.mpskit("apply", self.root, *options).output)
        self.assertEqual(applied["branch"], f"refs/heads/{BRANCH}")
        self.assertEqual(applied["patches"], [{"name": "square", "commit": "ID"}])
        self.assertEqual(sorted(applied["paths"]), [KERNEL, ACTIVATION, f"{OPERATIONS}/Square.mm"])
        self.assertFalse(applied["already"] or applied["dry_run"])
        self.assertTrue(json.loads(self.mpskit("apply", self.root, *options).output)["already"])
        reverted = json.loads(self.mpskit("revert", self.root, "--json").output)
        self.assertEqual(reverted["reverted"], f"refs/heads/{BRANCH}")
        self.assertEqual(reverted["branch"], "refs/heads/main")


class WrongEnvironmentTest(CheckoutTestCase):
    def test_an_environment_that_points_git_elsewhere(self) -> None:
        other = self.directory / "other"
        make_checkout(other, TREE)
        before = Snapshot.take(self.root)
        with mock.patch.dict(os.environ, {"GIT_DIR": str(other / ".git")}):
            outcome = self.apply()
        self.assertExpectedInline(
            str(outcome),
            """\
error: GIT_DIR is set in the environment and would send git to another place.
  next: Run the command without it: env -u GIT_DIR mpskit ...
exit code 1
""",
        )
        self.assertEqual(Snapshot.take(self.root), before)
        self.assertEqual(run_git(other, "branch", "--list", BRANCH), "")

    def test_git_is_missing(self) -> None:
        before = Snapshot.take(self.root)
        with mock.patch.dict(os.environ, {"PATH": str(self.directory)}):
            outcome = self.apply()
        self.assert_refused(outcome, before)
        self.assertExpectedInline(
            str(outcome),
            """\
error: git is not installed, or not on the PATH.
  next: Install git 2.31 or newer and run the command again.
exit code 1
""",
        )

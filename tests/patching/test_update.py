# ruff: noqa: E501 (expected output stands as it is printed)
"""Series of several patches, and branches brought to the patch set as it is now."""

from __future__ import annotations

import json
import os
from unittest import mock

from checkouts import ACTIVATION, Snapshot, write_files
from series_case import BRANCH, KERNEL, TEST, SeriesTestCase


class SelectionTest(SeriesTestCase):
    def test_all_are_a_commit_each_with_trailers(self) -> None:
        self.assertEqual(self.apply().exit_code, 0)
        self.assertEqual(
            self.subjects(),
            ["[MPS] Move square to Metal", "[MPS] Build on square", "[MPS] Test square"],
        )
        self.assertEqual(
            self.git("log", "-1", "--format=%(trailers)", "HEAD~1").strip(),
            "Reviewed-by: A. Reader <reader@example.com>",
        )

    def test_twice_is_once(self) -> None:
        self.apply()
        before = Snapshot.take(self.root)
        self.assertIn("already applied", self.apply().output)
        self.assertEqual(Snapshot.take(self.root), before)
        status = self.mpskit("status", self.root, "--patch-set", self.patch_set)
        self.assertEqual(status.exit_code, 0)
        self.assertNotIn("to do", status.output)

    def test_up_to_one(self) -> None:
        self.assertEqual(self.apply("--up-to", "cube").exit_code, 0)
        self.assertEqual(self.subjects(), ["[MPS] Move square to Metal", "[MPS] Build on square"])
        status = self.mpskit("status", self.root, "--patch-set", self.patch_set)
        self.assertIn("test: to do", status.output)
        self.assertIn("cube: done", status.output)

    def test_only_some(self) -> None:
        self.assertEqual(self.apply("--patch", "test", "--patch", "square").exit_code, 0)
        self.assertEqual(self.subjects(), ["[MPS] Move square to Metal", "[MPS] Test square"])

    def test_one_that_needs_another(self) -> None:
        self.assertExpectedInline(
            self.refuse("--patch", "cube"),
            """\
error: Patch cube does not fit this base: the base has no aten/src/ATen/native/mps/operations/Square.mm.
  next: `mpskit status` shows each edit; upstream may have moved this code, so look for a newer patch set.
exit code 1
""",
        )

    def test_no_such_patch(self) -> None:
        self.assertExpectedInline(
            self.refuse("--up-to", "cubes"),
            """\
error: The patch set square has no patch cubes.
  next: Its patches, in order: square, cube, test.
exit code 1
""",
        )
        self.assertExpectedInline(
            self.refuse("--up-to", "square", "--patch", "test"),
            """\
error: None of test comes up to square in the series.
  next: Give --patch or --up-to, not both.
exit code 1
""",
        )

    def test_status_and_diff_select_alike(self) -> None:
        options = ("--patch-set", self.patch_set, "--patch", "test")
        self.assertNotIn("square: to do", self.mpskit("status", self.root, *options).output)
        diff = self.mpskit("diff", self.root, *options, "--json")
        self.assertEqual([item["path"] for item in json.loads(diff.output)], [TEST])


class UpdateTest(SeriesTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.apply()

    def test_nothing_to_do(self) -> None:
        before = Snapshot.take(self.root)
        self.assertExpectedInline(
            self.update(),
            """\
mpskit/square is up to date: nothing to do
exit code 0
""",
        )
        self.assertEqual(Snapshot.take(self.root), before)

    def test_a_changed_patch_is_amended_and_those_below_stay(self) -> None:
        first, second, third = self.ids()
        self.git("commit", "--quiet", "--allow-empty", "-m", "Mine")
        write_files(self.patch_set, {TEST: "two = 2\n"})
        write_files(self.root, {"README.md": "changed\n", "version.txt": "staged\n"})
        self.git("add", "version.txt")
        status = self.git("status", "--porcelain")
        self.assertExpectedInline(
            self.update(),
            """\
updated: mpskit/square
  [MPS] Move square to Metal
    aten/src/ATen/native/mps/kernels/Square.metal: add
    aten/src/ATen/native/mps/operations/Square.mm: add
    aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(square_mps_out)
  [MPS] Build on square
    aten/src/ATen/native/mps/operations/Square.mm: insert behind const Tensor& out) {
  [MPS] Test square
    test/test_square.py: add
  on top: 1 commit of yours, kept
exit code 0
""",
        )
        self.assertEqual((self.root / TEST).read_text(), "two = 2\n")
        self.assertEqual(self.ids()[:2], [first, second])
        self.assertNotEqual(self.ids()[2], third)
        self.assertEqual(self.git("status", "--porcelain"), status)
        self.assertIn("up to date", self.update())
        self.assertEqual(self.mpskit("revert", self.root).exit_code, 0)

    def test_an_amended_commit_keeps_author_and_date(self) -> None:
        self.mpskit("revert", self.root)
        author = {"GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_DATE": "2001-02-03T04:05:06Z"}
        with mock.patch.dict(os.environ, author):
            self.apply()
        write_files(self.patch_set, {TEST: "two = 2\n"})
        self.update()
        self.assertEqual(self.git("log", "-1", "--format=%an %at %cn"), "Ann 981173106 Tester\n")

    def test_commits_on_top_are_kept(self) -> None:
        self.commit({"README.md": "mine\n"}, "My words")
        self.commit({KERNEL: "kernel void square() {}\n// mine\n"}, "My comment")
        write_files(self.patch_set, {TEST: "two = 2\n"})
        self.in_series('why = "It is faster there."', 'why = "It is quicker there."')
        self.assertExpectedInline(
            self.update(),
            """\
updated: mpskit/square
  [MPS] Move square to Metal
    aten/src/ATen/native/mps/kernels/Square.metal: add
    aten/src/ATen/native/mps/operations/Square.mm: add
    aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(square_mps_out)
  [MPS] Build on square
    aten/src/ATen/native/mps/operations/Square.mm: insert behind const Tensor& out) {
  [MPS] Test square
    test/test_square.py: add
  on top: 2 commits of yours, kept
exit code 0
""",
        )
        self.assertEqual(self.subjects()[3:], ["My words", "My comment"])
        self.assertEqual((self.root / KERNEL).read_text(), "kernel void square() {}\n// mine\n")
        self.assertEqual((self.root / TEST).read_text(), "two = 2\n")
        self.assertIn("quicker", self.git("log", "-1", "--format=%B", "main..HEAD~4"))

    def test_both_sides_are_merged_line_by_line(self) -> None:
        lines = [f"// {n}\n" for n in range(9)]
        write_files(self.patch_set, {KERNEL: "".join(lines)})
        self.update()
        self.commit({KERNEL: "".join([*lines[:8], "// mine\n"])}, "Mine")
        write_files(self.patch_set, {KERNEL: "".join(["// theirs\n", *lines[1:]])})
        self.assertIn("1 commit of yours, kept", self.update())
        self.assertEqual(
            (self.root / KERNEL).read_text(), "".join(["// theirs\n", *lines[1:8], "// mine\n"])
        )

    def test_a_commit_that_the_patch_set_took_in_is_dropped(self) -> None:
        self.commit({KERNEL: "better\n"}, "Better")
        write_files(self.patch_set, {KERNEL: "better\n"})
        self.update()
        self.assertEqual(len(self.subjects()), 3)

    def test_a_patch_more_and_a_patch_less(self) -> None:
        self.update("--up-to", "square")
        self.assertEqual(self.subjects(), ["[MPS] Move square to Metal"])
        self.assertFalse((self.root / TEST).exists())
        self.update()
        self.assertEqual(len(self.subjects()), 3)
        self.assertEqual(self.git("status", "--porcelain"), "")

    def test_onto_a_newer_base(self) -> None:
        self.commit({"mine.txt": "mine\n"}, "Mine")
        self.git("checkout", "--quiet", "main")
        self.commit({"README.md": "moved on\n"}, "Upstream")
        self.assertExpectedInline(
            self.update(),
            """\
updated: mpskit/square
  [MPS] Move square to Metal
    aten/src/ATen/native/mps/kernels/Square.metal: add
    aten/src/ATen/native/mps/operations/Square.mm: add
    aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(square_mps_out)
  [MPS] Build on square
    aten/src/ATen/native/mps/operations/Square.mm: insert behind const Tensor& out) {
  [MPS] Test square
    test/test_square.py: add
  on top: 1 commit of yours, kept
exit code 0
""",
        )
        self.assertEqual(self.git("branch", "--show-current").strip(), BRANCH)
        self.assertEqual(self.subjects()[-1], "Mine")
        self.assertEqual((self.root / "README.md").read_text(), "moved on\n")
        self.git("branch", "kept")
        self.mpskit("revert", self.root)
        self.assertEqual(self.git("log", "-1", "--format=%s %D"), "Upstream HEAD -> main\n")

    def test_dry_run_writes_nothing(self) -> None:
        write_files(self.patch_set, {TEST: "two = 2\n"})
        self.commit({"README.md": "mine\n"}, "Mine")
        before, objects = Snapshot.take(self.root), self.git("count-objects")
        self.assertIn("would be updated", self.update("--dry-run"))
        self.assertEqual(Snapshot.take(self.root), before)
        self.assertEqual(self.git("count-objects"), objects)

    def test_for_programs(self) -> None:
        self.commit({"README.md": "mine\n"}, "Mine")
        write_files(self.patch_set, {TEST: "two = 2\n"})
        data = json.loads(self.apply("--update", "--json").output)
        self.assertEqual([patch["name"] for patch in data["patches"]], ["square", "cube", "test"])
        self.assertEqual(len(data["kept_commits"]), 1)

    def test_applying_another_version_says_how(self) -> None:
        write_files(self.patch_set, {TEST: "two = 2\n"})
        self.assertIn("mpskit apply --update", self.refuse())


class RefusedUpdateTest(SeriesTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.apply()
        write_files(self.patch_set, {TEST: "two = 2\n"})

    def test_nothing_is_applied(self) -> None:
        self.mpskit("revert", self.root)
        self.assertExpectedInline(
            self.refuse("--update"),
            """\
error: Neither main nor mpskit/square is a branch that mpskit applied a patch set on.
  next: Apply it first: mpskit apply
exit code 1
""",
        )

    def test_changes_in_the_way(self) -> None:
        write_files(self.root, {TEST: "mine\n"})
        self.assertIn("test/test_square.py (modified)", self.refuse("--update"))
        self.git("add", TEST)
        self.assertIn("test/test_square.py (modified and staged)", self.refuse("--update"))

    def test_a_staged_text_that_only_the_index_has(self) -> None:
        write_files(self.root, {TEST: "staged\n"})
        self.git("add", TEST)
        write_files(self.root, {TEST: "two = 2\n"})
        self.assertIn("test/test_square.py", self.refuse("--update"))

    def test_a_change_that_the_update_would_make_is_no_obstacle(self) -> None:
        write_files(self.root, {TEST: "two = 2\n"})
        self.assertIn("updated", self.update())
        self.assertEqual(self.git("status", "--porcelain"), "")

    def test_amended(self) -> None:
        self.git("commit", "--quiet", "--amend", "-m", "My words")
        self.assertExpectedInline(
            self.refuse("--update"),
            """\
error: Branch mpskit/square no longer holds the commits that mpskit made: they were amended or rebased.
  next: Keep it with `git branch NEW-NAME mpskit/square`; then `git reset --keep ID` on mpskit/square goes back to mpskit's commits.
exit code 1
""",
        )

    def test_a_merge_on_top(self) -> None:
        self.git("checkout", "--quiet", "-b", "side", "main")
        self.commit({"README.md": "side\n"}, "Side")
        self.git("checkout", "--quiet", BRANCH)
        self.git("merge", "--quiet", "--no-edit", "side")
        self.assertExpectedInline(
            self.refuse("--update"),
            """\
error: Branch mpskit/square has a merge on top of mpskit's commits, ID, and a merge cannot be moved.
  next: Make it plain commits first: git rebase ID mpskit/square
exit code 1
""",
        )

    def test_the_new_base_has_it_already(self) -> None:
        self.update()
        self.git("checkout", "--quiet", "-b", "merged")
        self.assertExpectedInline(
            self.refuse("--update"),
            """\
error: merged has the patch set in it already: there is nothing to put on top.
  next: Remove the branch with `mpskit revert --branch mpskit/square`.
exit code 1
""",
        )

    def test_the_branch_is_checked_out_in_another_worktree(self) -> None:
        self.git("checkout", "--quiet", "main")
        self.git("worktree", "add", "--quiet", str(self.directory / "other"), BRANCH)
        self.assertExpectedInline(
            self.refuse("--update"),
            """\
error: Branch mpskit/square is checked out in DIR/other.
  next: Run the command there, or free the branch: git -C DIR/other checkout --detach
exit code 1
""",
        )
        outcome = self.mpskit("revert", self.root)
        self.assertIn("is checked out in", outcome.output)


class ConflictTest(SeriesTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.apply()
        self.commit({"README.md": "mine\n"}, "Words")
        self.commit({TEST: "mine = 1\n"}, "My test")
        write_files(self.patch_set, {TEST: "theirs = 1\n"})
        self.before = Snapshot.take(self.root).without_stat_cache()
        self.old = self.ids()

    def stop(self) -> None:
        self.stopped = self.apply("--update")
        self.assertEqual(self.stopped.exit_code, 1)

    def as_before(self) -> None:
        now = Snapshot.take(self.root).without_stat_cache()
        for name in ("head", "index", "work_tree"):
            self.assertEqual(getattr(now, name), getattr(self.before, name))
        self.assertEqual(
            {name: value for name, value in now.refs.items() if "ORIG" not in name},
            self.before.refs,
        )

    def test_both_sides_are_shown_and_git_waits(self) -> None:
        self.stop()
        self.assertExpectedInline(
            str(self.stopped),
            """\
error: Your commit 'My test' and the new patch set change the same lines: test/test_square.py.
diff --cc test/test_square.py
index ID,ID..ID
--- a/test/test_square.py
+++ b/test/test_square.py
@@@ -1,1 -1,1 +1,5 @@@
++<<<<<<< HEAD
 +theirs = 1
++=======
+ mine = 1
++>>>>>>> ID (My test)
  next: Resolve each file and `git add` it; then `mpskit apply --continue`, or give up with `mpskit apply --abort`.
exit code 1
""",
        )
        self.assertIn(
            "UU test/test_square.py", self.git("status", "--porcelain").replace("AA", "UU")
        )
        self.assertIn(
            "waits to be ended",
            self.mpskit("status", self.root, "--patch-set", self.patch_set).output,
        )

    def test_continue(self) -> None:
        self.stop()
        self.assertIn("conflicts left", str(self.apply("--continue")))
        write_files(self.root, {TEST: "both = 1\n"})
        self.git("add", TEST)
        self.assertExpectedInline(
            str(self.apply("--continue")),
            """\
updated; now on mpskit/square
exit code 0
""",
        )
        self.check_resolved()

    def test_git_continues(self) -> None:
        self.stop()
        self.git_continues()

    def git_continues(self) -> None:
        write_files(self.root, {TEST: "both = 1\n"})
        self.git("add", TEST)
        self.git("-c", "core.editor=true", "rebase", "--continue")
        self.check_resolved()

    def check_resolved(self) -> None:
        self.assertEqual(self.subjects()[3:], ["Words", "My test"])
        self.assertEqual(self.git("show", "HEAD~2:" + TEST), "theirs = 1\n")
        self.assertEqual((self.root / TEST).read_text(), "both = 1\n")
        self.assertIn("up to date", self.update())
        self.assertEqual(self.git("for-each-ref", "refs/mpskit/pending"), "")

    def test_abort(self) -> None:
        self.stop()
        self.assertExpectedInline(
            str(self.apply("--abort")),
            """\
given up; now on mpskit/square
exit code 0
""",
        )
        self.as_before()

    def test_abort_for_programs(self) -> None:
        self.stop()
        data = json.loads(self.apply("--abort", "--json").output)
        self.assertEqual((data["aborted"], data["branch"]), (True, f"refs/heads/{BRANCH}"))
        self.assertEqual(self.apply("--abort", "--continue").exit_code, 2)

    def test_git_aborts(self) -> None:
        self.stop()
        self.git("rebase", "--abort")
        self.assertEqual(self.ids(), self.old)
        self.assertIn("No update waits", str(self.apply("--continue")))
        self.as_before()

    def test_another_worktree_does_not_forget_it(self) -> None:
        other = self.directory / "other"
        self.git("worktree", "add", "--quiet", "--detach", str(other), "main")
        self.stop()
        self.assertEqual(self.mpskit("revert", other, "--branch", "none").exit_code, 1)
        self.git_continues()

    def test_a_new_base_that_conflicts_can_be_given_up(self) -> None:
        self.git("checkout", "--quiet", "main")
        self.commit({"README.md": "upstream's\n"}, "Upstream")
        self.stop()
        self.assertIn("UU README.md", self.git("status", "--porcelain"))
        self.assertIn("given up; now on main", self.apply("--abort").output)
        self.assertEqual(self.git("branch", "--show-current").strip(), "main")
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertEqual(self.git("rev-list", "--reverse", BRANCH).split()[-5:], self.old)

    def test_begun_without_a_branch_it_is_given_up_without_one(self) -> None:
        self.git("checkout", "--quiet", "--detach", "main")
        self.stop()
        self.assertIn("given up; now on detached HEAD", self.apply("--abort").output)
        self.assertEqual(self.git("rev-parse", "HEAD"), self.git("rev-parse", "main"))

    def test_begun_on_a_branch_that_is_gone_it_stays_on_its_own(self) -> None:
        self.git("checkout", "--quiet", "-b", "short-lived", "main")
        self.stop()
        self.git("branch", "--quiet", "-D", "short-lived")
        self.assertIn(f"given up; now on {BRANCH}", self.apply("--abort").output)

    def test_other_commands_wait(self) -> None:
        self.stop()
        for command in ("apply", "revert", "refresh"):
            options = () if command == "revert" else ("--patch-set", self.patch_set)
            outcome = self.mpskit(command, self.root, *options)
            self.assertIn("in the middle of a rebase", outcome.output)

    def test_a_change_in_the_work_tree_comes_first(self) -> None:
        write_files(self.root, {"version.txt": "changed\n"})
        self.assertExpectedInline(
            self.refuse("--update"),
            """\
error: Your commit 'My test' and the new patch set change the same lines: test/test_square.py. To resolve that git needs a work tree without changes: version.txt.
  next: Commit them or put them aside with `git stash`; then run it again.
exit code 1
""",
        )

    def test_a_new_file_where_the_patch_set_has_one(self) -> None:
        self.in_series('files = ["test/test_square.py"]', 'files = ["test/test_square.py", "a.py"]')
        write_files(self.patch_set, {"a.py": "ours\n"})
        write_files(self.root, {"a.py": "mine\n"})
        self.assertIn("a.py (untracked)", self.refuse("--update"))

    def test_dry_run_tells(self) -> None:
        self.assertExpectedInline(
            self.refuse("--update", "--dry-run"),
            """\
error: Your commit 'My test' and the new patch set change the same lines: test/test_square.py.
  next: Without --dry-run, git stops there in a rebase for you to resolve it.
exit code 1
""",
        )

    def test_a_file_that_the_user_deleted(self) -> None:
        self.git("rm", "--quiet", TEST)
        self.git("commit", "--quiet", "-m", "No test")
        self.stop()
        self.assertIn("test/test_square.py", self.stopped.output)
        self.git("rebase", "--abort")

    def test_nothing_waits(self) -> None:
        self.assertExpectedInline(
            self.refuse("--continue"),
            """\
error: No update waits to be continued.
  next: Start one: mpskit apply --update
exit code 1
""",
        )


class ActivationMovesOnTest(SeriesTestCase):
    def test_the_definition_is_cut_out_of_the_new_text(self) -> None:
        self.apply()
        self.git("checkout", "--quiet", "main")
        text = (self.root / ACTIVATION).read_text()
        self.commit({ACTIVATION: "// a line more\n" + text.replace('"}"', '"fixed"')})
        self.update()
        now = (self.root / ACTIVATION).read_text()
        self.assertTrue(now.startswith("// a line more\n"))
        self.assertNotIn("square_mps_out", now)

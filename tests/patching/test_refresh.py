# ruff: noqa: E501 (expected output stands as it is printed)
"""Edits made in the checkout go back into the patch set's directory."""

from __future__ import annotations

import json

from checkouts import ACTIVATION, Outcome, Snapshot, write_files
from series_case import BRANCH, HOST, KERNEL, TEST, SeriesTestCase


class RefreshTestCase(SeriesTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.apply()

    def refresh(self, *options: str) -> Outcome:
        return self.mpskit("refresh", self.root, "--patch-set", self.patch_set, *options)

    def in_set(self, path: str) -> str:
        return (self.patch_set / path).read_text()

    def assert_settled(self) -> None:
        """The branch carries the patch set as it is, and nothing is left to refresh or update."""
        self.assertIn("up to date", self.update())
        self.assertIn("nothing to do", self.refresh().output)


class RefreshTest(RefreshTestCase):
    def test_an_edit_in_the_work_tree(self) -> None:
        first = self.ids()[0]
        write_files(self.root, {TEST: "better = 1\n", "README.md": "mine\n"})
        times = (self.root / TEST).stat().st_mtime_ns
        self.assertExpectedInline(
            str(self.refresh()),
            """\
taken into DIR/patches
  test/test_square.py
exit code 0
""",
        )
        self.assertEqual(self.in_set(TEST), "better = 1\n")
        self.assertEqual(self.git("show", f"HEAD:{TEST}"), "better = 1\n")
        self.assertEqual(len(self.ids()), 3)
        self.assertEqual(self.ids()[0], first)
        self.assertEqual(self.git("status", "--porcelain"), " M README.md\n")
        self.assertEqual((self.root / TEST).stat().st_mtime_ns, times)
        self.assert_settled()

    def test_it_is_taken_staged_or_committed_alike(self) -> None:
        write_files(self.root, {TEST: "staged = 1\n"})
        self.git("add", TEST)
        self.assertEqual(self.refresh().exit_code, 0)
        self.assertEqual(self.in_set(TEST), "staged = 1\n")
        self.commit({TEST: "committed = 1\n"}, "Mine")
        self.commit({TEST: "committed = 2\n", "README.md": "mine\n"}, "More of mine")
        self.assertEqual(self.refresh().exit_code, 0)
        self.assertEqual(self.in_set(TEST), "committed = 2\n")
        # What the patch set took is no longer in the user's commits; what it did not, is.
        self.assertEqual(self.subjects()[3:], ["More of mine"])
        self.assertEqual(self.git("diff", "--name-only", "HEAD~1", "HEAD"), "README.md\n")
        self.assert_settled()

    def test_a_patch_further_down(self) -> None:
        write_files(self.root, {KERNEL: "kernel void square() { /* better */ }\n"})
        self.assertEqual(self.refresh().exit_code, 0)
        self.assertIn("better", self.git("show", f"HEAD~2:{KERNEL}"))
        self.assert_settled()

    def test_nothing_to_take(self) -> None:
        before = Snapshot.take(self.root)
        self.assertExpectedInline(
            str(self.refresh()),
            """\
the patch set has every edit that it can take: nothing to do
exit code 0
""",
        )
        self.assertEqual(Snapshot.take(self.root), before)

    def test_dry_run(self) -> None:
        write_files(self.root, {TEST: "better = 1\n"})
        before, objects = Snapshot.take(self.root), self.git("count-objects")
        self.assertExpectedInline(
            str(self.refresh("--dry-run")),
            """\
would be taken into DIR/patches
  test/test_square.py
exit code 0
""",
        )
        self.assertEqual(Snapshot.take(self.root), before)
        self.assertEqual(self.in_set(TEST), "one = 1\n")
        self.assertEqual(self.git("count-objects"), objects)

    def test_a_series_applied_in_part(self) -> None:
        self.update("--up-to", "square")
        write_files(self.root, {KERNEL: "kernel void square() { /* better */ }\n"})
        self.assertEqual(self.refresh().exit_code, 0)
        self.assertEqual(self.subjects(), ["[MPS] Move square to Metal"])
        self.assertIn("better", self.in_set(KERNEL))

    def test_what_a_run_that_died_in_between_left(self) -> None:
        self.commit({TEST: "first = 1\n"}, "Mine")
        write_files(self.root, {TEST: "better = 1\n"})
        write_files(self.patch_set, {TEST: "better = 1\n"})
        self.assertExpectedInline(
            str(self.refresh()),
            """\
mpskit/square now carries the patch set as it is
exit code 0
""",
        )
        self.assertEqual(len(self.ids()), 3)
        self.assert_settled()

    def test_the_patch_set_is_edited_by_hand_as_well(self) -> None:
        self.in_series('why = "It is faster there."', 'why = "It is quicker there."')
        write_files(self.patch_set, {KERNEL: "kernel void square() { /* theirs */ }\n"})
        write_files(self.root, {TEST: "mine = 1\n"})
        self.assertEqual(self.refresh().exit_code, 0)
        self.assertIn("theirs", (self.root / KERNEL).read_text())
        self.assertEqual(self.in_set(TEST), "mine = 1\n")
        self.assertIn("quicker", self.git("log", "--format=%B", "main..HEAD"))
        self.assert_settled()

    def test_line_ends_that_git_converts(self) -> None:
        self.git("config", "core.autocrlf", "true")
        (self.root / TEST).write_bytes(b"better = 1\r\n")
        self.assertEqual(self.refresh().exit_code, 0)
        self.assertEqual((self.patch_set / TEST).read_bytes(), b"better = 1\n")
        self.assertEqual((self.root / TEST).read_bytes(), b"better = 1\r\n")
        self.assertEqual(self.git("status", "--porcelain"), "")

    def test_modes_and_links_of_the_patch_set_stay(self) -> None:
        real = self.directory / "real.py"
        (self.patch_set / TEST).rename(real)
        (self.patch_set / TEST).symlink_to(real)
        real.chmod(0o755)
        write_files(self.root, {TEST: "better = 1\n"})
        self.assertEqual(self.refresh().exit_code, 0)
        self.assertEqual(real.read_text(), "better = 1\n")
        self.assertTrue((self.patch_set / TEST).is_symlink())
        self.assertEqual(real.stat().st_mode & 0o777, 0o755)

    def test_for_programs(self) -> None:
        write_files(self.root, {TEST: "better = 1\n"})
        data = json.loads(self.refresh("--json").output)
        self.assertEqual(data["taken"], [TEST])
        self.assertFalse(data["already"] or data["left"])


class LeftTest(RefreshTestCase):
    """Edits that cannot go back by themselves are named, with what to do about them."""

    def left(self) -> str:
        outcome = self.refresh()
        self.assertEqual(outcome.exit_code, 0)
        return "".join(f"{line}\n" for line in outcome.output.splitlines() if "left" in line)

    def in_activation(self, old: str, new: str) -> None:
        text = (self.root / ACTIVATION).read_text()
        self.assertIn(old, text)
        write_files(self.root, {ACTIVATION: text.replace(old, new)})

    def test_beside_an_edit(self) -> None:
        self.in_activation("neighbour_after", "neighbour_behind")
        self.assertExpectedInline(
            self.left(),
            """\
left: aten/src/ATen/native/mps/operations/Activation.mm: the patch changes this file by edits and not as a whole; put your change into series.toml as a replace_in or insert_after, or commit it on top
""",
        )
        self.assertIn("neighbour_behind", (self.root / ACTIVATION).read_text())

    def test_a_removed_definition_is_back(self) -> None:
        self.in_activation(
            "Tensor neighbour_after",
            "TORCH_IMPL_FUNC(square_mps_out)() {\n}\n\nTensor neighbour_after",
        )
        self.assertExpectedInline(
            self.left(),
            """\
left: aten/src/ATen/native/mps/operations/Activation.mm: your change undoes the edit `remove TORCH_IMPL_FUNC(square_mps_out)` or lies inside it; change that edit in series.toml, or the file that has the code now
""",
        )

    def test_a_file_that_a_later_patch_edits(self) -> None:
        write_files(self.root, {HOST: "mine\n"})
        self.assertExpectedInline(
            self.left(),
            """\
left: aten/src/ATen/native/mps/operations/Square.mm: patch cube edits what patch square adds; change both by hand
""",
        )

    def test_a_file_that_is_gone(self) -> None:
        (self.root / TEST).unlink()
        self.assertExpectedInline(
            self.left(),
            """\
left: test/test_square.py: is no longer there as a plain file; take it out of `files` in series.toml
""",
        )

    def test_a_file_that_became_a_link(self) -> None:
        (self.root / TEST).unlink()
        (self.root / TEST).symlink_to("elsewhere.py")
        self.assertIn("no longer there as a plain file", self.left())
        self.assertEqual(self.in_set(TEST), "one = 1\n")


class InsideAnEditTest(RefreshTestCase):
    def test_the_edit_to_change_is_named(self) -> None:
        self.mpskit("revert", self.root)
        self.in_series('[[patch]]\nname = "cube"', EDIT + '[[patch]]\nname = "cube"')
        self.apply()
        text = (self.root / ACTIVATION).read_text()
        write_files(self.root, {ACTIVATION: text.replace("anchored = 1", "anchored = 2")})
        self.assertExpectedInline(
            str(self.refresh()),
            """\
the patch set has every edit that it can take: nothing to do
left: aten/src/ATen/native/mps/operations/Activation.mm: your change undoes the edit `replace Tensor neighbour_before` or lies inside it; change that edit in series.toml, or the file that has the code now
exit code 0
""",
        )


EDIT = """\
[[patch.edit]]
kind = "replace_in"
path = "aten/src/ATen/native/mps/operations/Activation.mm"
old = "Tensor neighbour_before"
new = "int anchored = 1;\\nTensor neighbour_before"

"""


class RefusedRefreshTest(RefreshTestCase):
    def refuse_refresh(self) -> str:
        before = Snapshot.take(self.root)
        outcome = self.refresh()
        self.assert_refused(outcome, before)
        return str(outcome)

    def test_both_have_changed(self) -> None:
        write_files(self.root, {TEST: "mine = 1\n"})
        write_files(self.patch_set, {TEST: "theirs = 1\n"})
        self.assertExpectedInline(
            self.refuse_refresh(),
            """\
error: test/test_square.py has changed both in DIR/pytorch and in the patch set since it was applied.
<<<<<<< the checkout
mine = 1
=======
theirs = 1
>>>>>>> the patch set
  next: Commit your edit there and run `mpskit apply --update`, which merges the two; then run `mpskit refresh` again.
exit code 1
""",
        )
        self.assertEqual(self.in_set(TEST), "theirs = 1\n")

    def test_not_on_the_branch(self) -> None:
        self.git("checkout", "--quiet", "main")
        self.assertExpectedInline(
            self.refuse_refresh(),
            """\
error: main is no branch that mpskit applied a patch set on.
  next: Check that branch out, or apply the patch set first: mpskit apply
exit code 1
""",
        )

    def test_a_staged_text_that_only_the_index_has(self) -> None:
        write_files(self.root, {TEST: "staged = 1\n"})
        self.git("add", TEST)
        write_files(self.root, {TEST: "better = 1\n"})
        self.assertIn("test/test_square.py", self.refuse_refresh())
        self.assertEqual(self.in_set(TEST), "one = 1\n")

    def test_a_patch_that_the_set_no_longer_has(self) -> None:
        self.in_series('name = "cube"', 'name = "cubes"')
        self.assertExpectedInline(
            self.refuse_refresh(),
            """\
error: The patch set square has no patch cube.
  next: Its patches, in order: square, cubes, test.
exit code 1
""",
        )

    def test_edit_commit_update_refresh(self) -> None:
        lines = [f"line{n} = {n}\n" for n in range(9)]
        write_files(self.patch_set, {TEST: "".join(lines)})
        self.update()
        write_files(self.root, {TEST: "".join([*lines[:8], "mine = 1\n"])})
        write_files(self.patch_set, {TEST: "".join(["theirs = 1\n", *lines[1:]])})
        self.refuse_refresh()
        self.git("commit", "--quiet", "--all", "-m", "Mine")
        self.update()
        self.assertEqual(self.refresh().exit_code, 0)
        self.assertEqual(self.in_set(TEST), "".join(["theirs = 1\n", *lines[1:8], "mine = 1\n"]))
        self.assertEqual(self.git("log", "-1", "--format=%s", BRANCH), "[MPS] Test square\n")
        self.assert_settled()

"""The checks of the commits, each with a case in which it fails."""

from __future__ import annotations

from proposals import PLAN, ProposalTestCase

from mpskit.checkout import Checkout
from mpskit.errors import MpskitError
from mpskit.patching import load_patch_set
from mpskit.pullrequest.applied import AppliedSeries
from mpskit.pullrequest.checks import commits


class PlaceTest(ProposalTestCase):
    def test_passes(self) -> None:
        series = self.make_applied()
        self.assert_passes(commits.applies(series, series.record.base), "6 files change on")
        self.assert_passes(commits.alone(series), "mpskit/small: 1 commit on the base")

    def test_a_base_that_it_does_not_fit(self) -> None:
        series = self.make_applied()
        self.git("switch", "--quiet", "main")
        self.commit({PLAN: "// another\n"})
        self.assert_fails(commits.applies(series, "main"), PLAN, "with another text")

    def test_a_base_that_has_it(self) -> None:
        series = self.make_applied()
        self.assert_fails(commits.applies(series, series.record.branch), "already")

    def test_a_branch_with_another_tree(self) -> None:
        series = self.make_applied()
        self.commit({PLAN: "// mine\n"})
        self.assert_fails(commits.applies(series, series.record.base), "does not give the tree")

    def test_another_commit_on_the_branch(self) -> None:
        series = self.make_applied()
        self.commit({"README.md": "mine\n"})
        self.assert_fails(commits.alone(series), "is not ours")

    def test_an_amended_branch(self) -> None:
        series = self.make_applied()
        self.git("commit", "--quiet", "--amend", "-m", "Mine")
        self.assert_fails(commits.alone(series), "is gone", "is not ours")

    def test_changes_that_are_not_committed(self) -> None:
        series = self.make_applied()
        (self.root / PLAN).write_text("// mine\n")
        self.assert_fails(commits.alone(series), f"{PLAN} is modified")

    def test_not_applied(self) -> None:
        self.make_applied()
        self.git("switch", "--quiet", "main")
        with self.assertRaisesRegex(MpskitError, "no patch set applied on main"):
            self.series()

    def test_another_version_of_the_patch_set(self) -> None:
        self.make_applied()
        series_file = self.patch_set / "series.toml"
        series_file.write_text(series_file.read_text().replace("It compiled", "It built"))
        with self.assertRaisesRegex(MpskitError, "another version"):
            AppliedSeries.find(Checkout.open(self.root), load_patch_set(self.patch_set))


class MessageTest(ProposalTestCase):
    def assert_message_fails(self, text: str, *why: str) -> None:
        problems = "; ".join(commits._message_problems(text))
        for part in why:
            self.assertIn(part, problems)

    def test_passes(self) -> None:
        self.assert_passes(commits.message(self.only_commit()), "subject of 31 characters")

    def test_subject(self) -> None:
        self.assert_message_fails("Move it.\n\nWhy.\n", "[MPS]", "full stop")
        self.assert_message_fails(f"[MPS] {'x' * 70}\n\nWhy.\n", "76 characters, more than 72")

    def test_body(self) -> None:
        self.assert_message_fails("[MPS] Move it\n", "no text under the subject")
        self.assert_message_fails("[MPS] Move it\nWhy.\n", "no empty line")
        self.assert_message_fails(f"[MPS] Move it\n\n{'word ' * 20}\n", "line 3 has 100 characters")

    def test_a_long_link_is_let_pass(self) -> None:
        text = f"[MPS] Move it\n\nhttps://example.com/{'x' * 90}\n"
        self.assertEqual(list(commits._message_problems(text)), [])

    def test_closing_words(self) -> None:
        for line in ("fixes #12", "Closes #12", "Fixes: #12", "Fixes #12 and more"):
            with self.subTest(line):
                self.assert_message_fails(f"[MPS] Move it\n\n{line}\n", "`Fixes #NUMBER`")

    def test_stray_trailers(self) -> None:
        for trailer in ("Signed-off-by: A <a@b.c>", "ghstack-source-id: 12", "Change-Id: I1"):
            with self.subTest(trailer):
                text = f"[MPS] Move it\n\nWhy.\n\n{trailer}\n"
                self.assert_message_fails(text, f"stray trailer {trailer.partition(':')[0]}")
        self.assert_message_fails(
            "[MPS] Move it\n\nWhy.\n\nPull Request resolved: #1\n", "which PyTorch's bot writes"
        )
        text = "[MPS] Move it\n\nWhy.\n\nCo-authored-by: A <a@b.c>\n"
        self.assertEqual(list(commits._message_problems(text)), [])


class SizeTest(ProposalTestCase):
    def test_passes(self) -> None:
        self.assert_passes(commits.size(self.only_commit()), "changed lines in 6 files")

    def test_too_large(self) -> None:
        item = self.only_commit(**{PLAN: self.files[PLAN] + "// a line\n" * 2000})
        self.assert_fails(commits.size(item), "refuses more than 2000")

# ruff: noqa: E501 (expected output stands as it is printed)
"""``mpskit pr``: what it prints and writes, and that the patch files give the same tree."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import ClassVar
from unittest import mock

from checkouts import Outcome, Snapshot, make_checkout, run_git
from proposals import (
    BASE,
    SECOND_PATCH,
    UPSTREAM_TEST,
    ProposalTestCase,
    bench_report,
    suite_result,
)

from mpskit.pullrequest.checks import branches, commits
from mpskit.pullrequest.evidence import Source
from mpskit.pullrequest.upstream_tests import UpstreamRun

FAST = ("--skip-build", "--skip-tests")


class _Command(ProposalTestCase):
    # The kernels are mpskit's own: how they are formatted, and how long they are, is not at issue.
    base: ClassVar = {**BASE, ".clang-format": "DisableFormat: true\n"}

    def setUp(self) -> None:
        super().setUp()
        self.enterContext_(mock.patch.object(commits, "_MOST_LINES", 10**6))
        self.out = self.directory / "out"
        self.report = self.write_json("report.json", suite_result().to_json())
        self.bench = self.write_json("bench.json", bench_report().to_json())

    def pr(self, *options: object) -> Outcome:
        return self.mpskit("pr", self.root, "--patch-set", self.patch_set, *map(str, options))

    def green(self, *options: object) -> Outcome:
        return self.pr("--report", self.report, "--bench", self.bench, *options)


class PrCommandTest(_Command):
    def make_stack(self) -> None:
        self.files["docs/log_softmax.md"] = "It is on Metal.\n"
        self.make_applied(**{"series.toml": self.files["series.toml"] + SECOND_PATCH})

    def test_what_it_prints(self) -> None:
        self.make_applied()
        before = Snapshot.take(self.root)
        outcome = self.green("--out", self.out, *FAST)
        said = re.sub(r"clang-format version [^,]+", "clang-format VERSION", str(outcome))
        said = re.sub(r"\d+ changed lines", "N changed lines", said)
        said = re.sub(r"lintrunner: .*", "lintrunner: WHY", said)
        self.assertExpectedInline(
            said,
            """\
  pass    applies to the base: 6 files change on ID
  pass    alone on its branch: mpskit/small: 1 commit on the base
  not run build: codegen: left out by --skip-build
  not run build: kernels: left out by --skip-build
  not run build: host: left out by --skip-build
  pass    OpInfo report: 4 passed on the cpu backend
  pass    tested sources: 4 files, as they are
  pass    skipped tests: 0 skipped, 0 declared
  pass    measured sources: 4 files, as they are
  pass    no shape slower: 2 workloads, compared with torch
  not run lintrunner: WHY
  pass    latency measured: Apple M1 Pro GPU
  pass    replaced code is gone: TORCH_IMPL_FUNC(log_softmax_mps_out) removed, with its includes and cache keys
  pass    no fast math: only where declared: *.metal (not at issue here)
  pass    clang-format: 4 files, clang-format VERSION, the checkout's style
  pass    commit message: subject of 31 characters, longest line 31
  pass    form of the files: 6 files
  pass    diff size: N changed lines in 6 files
  not run plan branches in upstream tests: left out by --skip-tests
  not run sanitizer: left out by --skip-tests
14 pass, 0 fail, 6 not run
Written
  DIR/out/0001-MPS-Move-log_softmax-to-Metal.patch
  DIR/out/forward/PR.md
  DIR/out/forward/message.txt
Elsewhere, on the same base
  git am --keep-non-patch DIR/out/*.patch
With ghstack (needs write access to pytorch/pytorch)
  cd DIR/base && git switch mpskit/small && ghstack
With gh
  cd DIR/base && git push REMOTE mpskit/small
  tail -n +3 DIR/out/forward/PR.md | gh pr create -R pytorch/pytorch -B main -H YOUR_NAME:mpskit/small -t '[MPS] Move log_softmax to Metal' -F -
Labels, as a comment on each
  gh pr comment NUMBER -R pytorch/pytorch -b '@pytorchbot label "module: mps"'
Nothing was pushed.
exit code 0
""",
        )
        self.assertEqual(Snapshot.take(self.root), before)

    def test_the_run_of_the_upstream_tests_is_written(self) -> None:
        self.make_applied()
        run = UpstreamRun("cpu", 2, [], {"log_softmax_float_u32": 3}, {}, 7, ["out of bounds"])
        with mock.patch.object(branches, "run_upstream_tests", return_value=run) as run_tests:
            outcome = self.green("--out", self.out, "--skip-build")
        tests = [self.root / UPSTREAM_TEST]
        run_tests.assert_called_once_with(["_log_softmax.out"], self.root, tests, None)
        self.assertIn("fail    sanitizer: out of bounds", outcome.output)
        written = json.loads((self.out / "forward/upstream_tests.json").read_text())
        self.assertEqual(written, run.to_json())
        digest = Source.of(Path("x"), (self.out / "forward/upstream_tests.json").read_bytes())
        self.assertIn(digest.digest[:16], (self.out / "forward/PR.md").read_text())

    def test_the_patch_files_give_the_same_tree_elsewhere(self) -> None:
        self.make_stack()
        self.green("--out", self.out, *FAST)
        clean = self.directory / "clean"
        make_checkout(clean, self.base)
        patches = sorted(map(str, self.out.glob("*.patch")))
        self.assertEqual(len(patches), 2)
        run_git(clean, "am", "--quiet", "--keep-non-patch", *patches)
        for what in ("HEAD^{tree}", "HEAD~^{tree}"):
            self.assertEqual(run_git(clean, "rev-parse", what), self.git("rev-parse", what))
        log = ("log", "--format=%an %ae %ad%n%B", "-2")
        self.assertEqual(run_git(clean, *log), self.git(*log))
        message = (self.out / "forward/message.txt").read_text()
        self.assertEqual(message.strip(), self.git("log", "-1", "--format=%B", "HEAD~").strip())

    def test_a_second_run_replaces_the_first(self) -> None:
        self.make_applied()
        self.out.mkdir()
        (self.out / "0007-old.patch").write_text("old")
        (self.out / "mine.txt").write_text("mine")
        for _ in range(2):
            self.green("--out", self.out, *FAST)
        names = sorted(path.name for path in self.out.iterdir())
        self.assertEqual(names, ["0001-MPS-Move-log_softmax-to-Metal.patch", "forward", "mine.txt"])

    def test_a_stack_has_a_text_each(self) -> None:
        self.make_stack()
        outcome = self.green("--out", self.out, *FAST)
        self.assertIn("fail    notes: latency measured", outcome.output)
        self.assertNotIn("gh pr create", outcome.output)
        for name, title in (("forward", "Move log_softmax"), ("notes", "Say that log_softmax")):
            text = (self.out / name / "PR.md").read_text()
            self.assertTrue(text.startswith(f"# [MPS] {title}"))
            self.assertIn("Stack, from the bottom:", text)

    def test_a_failed_check_gives_1_and_the_files_all_the_same(self) -> None:
        self.make_applied()
        outcome = self.pr("--out", self.out, *FAST)
        self.assertEqual(outcome.exit_code, 1)
        self.assertIn("fail    latency measured: no --bench FILE", outcome.output)
        self.assertIn("## Latency\n\nNot measured.\n", (self.out / "forward/PR.md").read_text())

    def test_check_and_draft_write_nothing(self) -> None:
        self.make_applied()
        checked = self.green("--check", "--out", self.out, *FAST)
        drafted = self.green("--draft", *FAST)
        self.assertEqual((checked.exit_code, drafted.exit_code), (0, 0))
        self.assertNotIn("# [MPS]", checked.output)
        self.assertIn("# [MPS] Move log_softmax to Metal\n", drafted.output)
        self.assertFalse(self.out.exists())

    def test_json(self) -> None:
        self.make_applied()
        data = json.loads(self.green("--out", self.out, "--json", *FAST).output)
        self.assertTrue(data["passed"])
        self.assertEqual({item["outcome"] for item in data["checks"]}, {"pass", "not run"})
        self.assertEqual(data["requests"][0]["title"], "[MPS] Move log_softmax to Metal")
        self.assertIsNone(data["pushed"])

    def test_another_base(self) -> None:
        self.make_applied()
        outcome = self.green("--check", "--base", "mpskit/small", *FAST)
        self.assertEqual(outcome.exit_code, 1)
        self.assertIn("fail    applies to the base", outcome.output)

    def test_what_is_refused(self) -> None:
        self.assertEqual(self.pr().exit_code, 2)
        self.make_applied()
        inside = self.green("--out", self.root / "out", *FAST)
        self.assertIn("lies inside the checkout", inside.output)
        for options in (("--report", "none.json"), ("--bench", "none.json")):
            self.assertIn("cannot be read", self.pr("--check", *options, *FAST).output)
        self.git("switch", "--quiet", "main")
        self.assertIn("next: Apply it first", self.pr("--check", *FAST).output)


class PushTest(_Command):
    def setUp(self) -> None:
        super().setUp()
        self.fork = self.directory / "fork.git"
        run_git(self.directory, "init", "--quiet", "--bare", str(self.fork))
        self.git("remote", "add", "fork", str(self.fork))
        self.make_applied()
        self.git("tag", "-a", "-m", "mine", "mine")

    def fork_refs(self) -> str:
        return run_git(self.fork, "for-each-ref", "--format=%(refname)")

    def test_only_the_branch(self) -> None:
        self.git("config", "push.followTags", "true")
        outcome = self.green("--check", "--push", "fork", *FAST)
        self.assertEqual(outcome.exit_code, 0, outcome.output)
        self.assertIn("pushed mpskit/small to fork", outcome.output)
        self.assertEqual(self.fork_refs(), "refs/heads/mpskit/small\n")

    def test_nothing_without_being_asked(self) -> None:
        self.assertIn("Nothing was pushed.", self.green("--check", *FAST).output)
        self.assertEqual(self.fork_refs(), "")

    def test_nothing_while_a_check_fails(self) -> None:
        outcome = self.pr("--check", "--push", "fork", *FAST)
        self.assertEqual(outcome.exit_code, 1)
        self.assertIn("not pushed to fork: a check fails", outcome.output)
        self.assertEqual(self.fork_refs(), "")

    def test_never_with_force(self) -> None:
        self.git("config", "remote.fork.push", "+refs/heads/*:refs/heads/*")
        self.git("push", "--quiet", "fork", "main:refs/heads/mpskit/small")
        other = self.git("commit-tree", "-m", "Theirs", "main^{tree}").strip()
        self.git("push", "--quiet", "--force", "fork", f"{other}:refs/heads/mpskit/small")
        outcome = self.green("--check", "--push", "fork", *FAST)
        self.assertEqual(outcome.exit_code, 1)
        self.assertIn("fork did not take mpskit/small", outcome.output)
        self.assertEqual(run_git(self.fork, "rev-parse", "mpskit/small").strip(), other)

    def test_an_unknown_remote(self) -> None:
        for remote in ("nowhere", "--force", str(self.fork)):
            with self.subTest(remote):
                outcome = self.green("--check", f"--push={remote}", *FAST)
                self.assertIn("has no remote", outcome.output)
        self.assertEqual(self.fork_refs(), "")

"""Upstream's tests run with the kernels in place, and the sanitizer, and what is made of both."""

from __future__ import annotations

import dataclasses

from proposals import SECOND_PATCH, UPSTREAM_TEST, UPSTREAM_TESTS, ProposalTestCase

from mpskit.errors import MpskitError
from mpskit.pullrequest.checks import branches
from mpskit.pullrequest.declarations import Exemption
from mpskit.pullrequest.upstream_tests import UpstreamRun, run_upstream_tests

U64 = Exemption("*_u64", "it takes gigabytes")
RUN = UpstreamRun(
    backend="cpu",
    tests=2,
    problems=[],
    launches={"log_softmax_row_float_u32": 3, "log_softmax_float_u32": 1},
    branches={
        "row": ["log_softmax_row_float_u32"],
        "strided": ["log_softmax_float_u32", "log_softmax_float_u64"],
    },
    sanitized=7,
    reports=[],
)


class JudgeTest(ProposalTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.item = self.only_commit()

    def judge(self, *declared: Exemption, **changes):
        return branches.judge(self.item, dataclasses.replace(RUN, **changes), declared)

    def test_passes(self) -> None:
        covered, sanitizer = self.judge(U64)
        self.assert_passes(covered, "2 tests launched 2 of 3 kernels", "takes gigabytes")
        self.assert_passes(sanitizer, "7 launches")

    def test_a_kernel_that_no_test_launches(self) -> None:
        self.assert_fails(self.judge()[0], "log_softmax_float_u64 not launched")
        covered, _ = self.judge(U64, launches={"log_softmax_row_float_u32": 1})
        self.assert_fails(covered, "log_softmax_float_u32 not launched")

    def test_a_kernel_that_the_series_does_not_describe(self) -> None:
        covered, _ = self.judge(branches={"new": ["log_softmax_new_float_u32"]})
        self.assert_fails(covered, "series.toml describes no kernel log_softmax_new")

    def test_a_test_that_fails(self) -> None:
        covered, _ = self.judge(U64, problems=["test_x: AssertionError"])
        self.assert_fails(covered, "test_x: AssertionError")

    def test_the_sanitizer_reports(self) -> None:
        _, sanitizer = self.judge(reports=["row: out of bounds"])
        self.assert_fails(sanitizer, "row: out of bounds")

    def test_no_sanitizer(self) -> None:
        _, sanitizer = self.judge(backend="mps", sanitized=0)
        self.assertEqual(sanitizer.outcome.value, "not run")


class RunTest(ProposalTestCase):
    def test_what_fails_and_what_is_never_launched(self) -> None:
        tests = UPSTREAM_TESTS.replace("((1, 20000), -1), ", "").replace("< 0.1", "< -1")
        tests += "\n        @unittest.skip('not now')\n        def test_later(self): pass\n"
        item = self.only_commit(**{UPSTREAM_TEST: tests})
        found = branches.run(item)
        assert found is not None
        self.assertEqual((found.backend, found.tests), ("cpu", 2))
        self.assertEqual(len(found.problems), 2)
        self.assertIn("AssertionError", found.problems[0])
        self.assertIn("was skipped: not now", found.problems[1])
        self.assertEqual(sum(found.launches.values()), 1)
        branches_of_dtypes = {name for names in found.branches.values() for name in names}
        self.assertGreater(len(branches_of_dtypes), len(found.launches))
        self.assertLessEqual(set(found.launches), branches_of_dtypes)
        self.assertEqual(found.reports, [])

    def test_a_file_that_does_not_run(self) -> None:
        self.make_applied(**{UPSTREAM_TEST: "import nothing_of_that_name\n"})
        with self.assertRaisesRegex(MpskitError, "No module named 'nothing_of_that_name'"):
            run_upstream_tests(["_log_softmax.out"], self.root, [self.root / UPSTREAM_TEST])

    def test_a_patch_without_an_op(self) -> None:
        self.files["docs/log_softmax.md"] = "It is on Metal.\n"
        series = self.make_applied(**{"series.toml": self.files["series.toml"] + SECOND_PATCH})
        self.assertIsNone(branches.run(series.commits[1]))

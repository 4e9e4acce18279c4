"""What the checks make of a build's result."""

from __future__ import annotations

from unittest import mock

from proposals import ProposalTestCase

from mpskit.building import BuildResult, Step, TargetResult
from mpskit.pullrequest.checks import builds

RESULT = BuildResult(
    (
        TargetResult("codegen", (Step("_log_softmax.out on MPS", True, 0.1),), 0.1),
        TargetResult("kernels", (Step("x.metal", False, 0.1, messages=("x:1: no", "y")),), 0.1),
        TargetResult("host", (), 0.1, unavailable="No compiler for macOS.", hint="pip install"),
    ),
    builds.TARGETS,
    0.3,
)


class BuildsTest(ProposalTestCase):
    def test_each_outcome(self) -> None:
        series = self.make_applied()
        with mock.patch.object(builds, "build", return_value=RESULT) as build:
            codegen, kernels, host = builds.builds(series)
        self.assertEqual(build.call_args.args[1], ("codegen", "kernels", "host"))
        self.assert_passes(codegen, "_log_softmax.out on MPS")
        self.assert_fails(kernels, "x.metal: x:1: no y")
        self.assertEqual((host.outcome.value, host.why), ("not run", "No compiler for macOS."))

    def test_a_kernel_that_does_not_compile(self) -> None:
        path = "aten/src/ATen/native/mps/kernels/LogSoftmax.metal"
        series = self.make_applied(**{path: self.files[path] + "int f() { return nothing; }\n"})
        with mock.patch.object(builds, "TARGETS", ("kernels",)):
            (kernels,) = builds.builds(series)
        self.assert_fails(kernels, "LogSoftmax.metal, cpu backend", "nothing")

    def test_left_out(self) -> None:
        self.assertEqual({check.outcome.value for check in builds.skipped()}, {"not run"})

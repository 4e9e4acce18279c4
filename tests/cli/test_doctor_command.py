"""`mpskit doctor`: what is there, what is missing, and the command that gets it."""

from __future__ import annotations

import json
from unittest import mock

from checkouts import CheckoutTestCase

from mpskit.metal.host_compiler import CompilerNotFoundError


class DoctorCommandTest(CheckoutTestCase):
    def test_this_machine(self) -> None:
        outcome = self.mpskit("doctor")
        self.assertEqual(outcome.exit_code, 0, outcome)
        for line in ("torch: 2.", "git: git version", "yes  apply the patch set (mpskit apply)"):
            self.assertIn(line, outcome.output)
        self.assertTrue(outcome.output.endswith("ready\n"))

    def test_json(self) -> None:
        data = json.loads(self.mpskit("doctor", "--json").output)
        self.assertTrue(data["healthy"])
        self.assertIsNone(data["checkout"])
        tools = {tool["name"]: tool for tool in data["tools"]}
        self.assertTrue(all(tool["found"] or tool["install"] for tool in tools.values()))
        essential = [ability for ability in data["abilities"] if ability["essential"]]
        self.assertTrue(essential and all(ability["possible"] for ability in essential))

    def test_without_a_compiler_the_main_job_cannot_run(self) -> None:
        gone = CompilerNotFoundError("No C++ compiler was found.")
        with mock.patch("mpskit.building.doctor.find_compiler", side_effect=gone):
            outcome = self.mpskit("doctor")
        self.assertEqual(outcome.exit_code, 1)
        self.assertIn("no   run the kernels on the cpu", outcome.output)
        self.assertIn("C++ compiler is missing: pip install 'mpskit[compiler]'", outcome.output)
        self.assertTrue(outcome.output.endswith("not ready\n"))

    def test_missing_extras_are_named_and_do_not_fail(self) -> None:
        with mock.patch("mpskit.building.doctor.is_mac", return_value=False):
            outcome = self.mpskit("doctor")
        self.assertEqual(outcome.exit_code, 0)
        self.assertIn("no   build PyTorch (mpskit build --target full)", outcome.output)
        self.assertIn("macOS is missing: needs a Mac", outcome.output)

    def test_checkout_that_fits(self) -> None:
        self.commit(
            {"torchgen/gen.py": "", "aten/src/ATen/templates/Functions.h": "#pragma once\n"}
        )
        options = (self.root, "--patch-set", self.patch_set)
        outcome = self.mpskit("doctor", *options)
        self.assertEqual(outcome.exit_code, 0, outcome)
        self.assertIn("DIR/pytorch: PyTorch 2.13.0, main\n  the patch set: to do\n", str(outcome))
        self.apply()
        self.assertIn("the patch set: done", self.mpskit("doctor", *options).output)

    def test_checkout_that_does_not_fit(self) -> None:
        self.git("rm", "-q", "-r", "c10")
        self.git("commit", "-q", "-m", "Before c10/metal")
        outcome = self.mpskit("doctor", self.root, "--patch-set", self.patch_set)
        self.assertEqual(outcome.exit_code, 1)
        self.assertIn("in the way: no c10/metal/utils.h: the kernels include it", outcome.output)
        self.assertIn("in the way: torchgen/gen.py is missing", outcome.output)

    def test_no_checkout(self) -> None:
        outcome = self.mpskit("doctor", self.directory / "nowhere")
        self.assertEqual(outcome.exit_code, 1)
        self.assertIn("DIR/nowhere does not exist", outcome.output)

"""mpskit new: what it refuses, what it leaves behind, and that its patch sets are whole."""

from __future__ import annotations

import os
import re
from unittest import mock

import pytest
from checkouts import CheckoutTestCase
from torchgen import local
from torchgen.api.types import NativeSignature
from torchgen.model import FunctionSchema

from mpskit.building.signatures import declared_signature, defined_signature
from mpskit.checkout.skeleton import make_skeleton
from mpskit.cli.new_command import KINDS
from mpskit.metal import DEFAULT_METAL_VERSION
from mpskit.metal.checking import check
from mpskit.patching import load_patch_set
from mpskit.pullrequest.checks import commits
from mpskit.scaffolding import KIND_NAMES, Formula, make_scaffold, scaffold

OPS = {
    "elementwise": "aten::special_log_ndtr",
    "row-reduction": "aten::logsumexp",
    "reduction-with-backward": "aten::_masked_softmax",
}


def test_kinds_are_named_once_for_help():
    assert KINDS == KIND_NAMES == tuple(OPS)


class NewCommandTest(CheckoutTestCase):
    def new(self, *arguments: str):
        return self.mpskit("new", *arguments)

    def refuse(self, op: str, *options: str) -> str:
        """What it says; no folder is left behind."""
        before = sorted(self.directory.iterdir())
        outcome = self.new("mine", str(self.directory / "mine"), "--op", op, *options)
        self.assertEqual(outcome.exit_code, 1, outcome.output)
        self.assertEqual(sorted(self.directory.iterdir()), before)
        return outcome.output

    def test_an_op_that_is_not_there(self) -> None:
        self.assertExpectedInline(
            self.refuse("aten::log_ndtr"),
            """\
error: PyTorch has no op aten::log_ndtr.
  next: Did you mean aten::special_log_ndtr, aten::logdet, aten::slogdet, aten::log_?
""",
        )

    def test_an_op_that_runs_on_mps_already(self) -> None:
        said = self.refuse("aten::_softmax")
        self.assertIn("_softmax.out runs on MPS already, by softmax_mps_out", said)
        self.assertIn("[[patch.layout]]", said)

    def test_an_op_that_is_made_of_others(self) -> None:
        self.assertIn("has no dispatch", self.refuse("aten::nanmean"))

    def test_an_op_of_no_kind(self) -> None:
        said = self.refuse("aten::heaviside")
        for kind in KINDS:
            self.assertIn(kind, said)
        self.assertIn(
            "does not fit this kind", self.refuse("aten::logsumexp", "--kind", "elementwise")
        )

    def test_an_op_without_a_formula(self) -> None:
        said = self.refuse("aten::special_airy_ai")
        self.assertIn("mpskit has no formula for aten::special_airy_ai", said)
        self.assertIn("--formula", said)

    def test_names(self) -> None:
        outcome = self.new("LogNdtr", "--op", OPS["elementwise"])
        self.assertIn("'LogNdtr' cannot name kernels", outcome.output)

    def test_a_folder_that_is_not_empty(self) -> None:
        outcome = self.new("mine", str(self.patch_set), "--op", OPS["elementwise"])
        self.assertExpectedInline(
            str(outcome),
            """\
error: DIR/patches is not empty.
  next: Name a directory that is empty or not there yet.
exit code 1
""",
        )

    def test_an_interrupt_leaves_nothing(self) -> None:
        before = sorted(self.directory.iterdir())
        with mock.patch.object(scaffold, "load_patch_set", side_effect=KeyboardInterrupt):
            outcome = self.new("mine", str(self.directory / "mine"), "--op", OPS["elementwise"])
        self.assertEqual(outcome.exit_code, 130)
        self.assertEqual(sorted(self.directory.iterdir()), before)


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_are_clean_and_no_place_is_left_open(kind, tmp_path):
    made = make_scaffold("mine", OPS[kind], tmp_path / "mine")
    assert made.target.kind == kind
    for path in made.files:
        assert not re.search(r"\$\{?\w", (made.directory / path).read_text()), path
    metal = made.directory / "aten/src/ATen/native/mps/kernels/Mine.metal"
    includes = [made.directory / "aten/src"]
    found = check(metal, include_dirs=includes, metal_version=DEFAULT_METAL_VERSION)
    assert not found.diagnostics


@pytest.mark.parametrize("kind", KINDS)
def test_commit_messages_are_as_pytorchs(kind, tmp_path):
    made = make_scaffold("a_name_of_many_words", OPS[kind], tmp_path / "mine")
    (patch,) = load_patch_set(made.directory).patches
    assert not list(commits._message_problems(patch.message))


@pytest.mark.parametrize("kind", ["row-reduction", "reduction-with-backward"])
def test_host_code_has_the_signatures_that_torchgen_declares(kind, tmp_path):
    made = make_scaffold("mine", OPS[kind], tmp_path / "mine")
    host = (made.directory / "aten/src/ATen/native/mps/operations/Mine.mm").read_text()
    for kernel in made.target.kernels:
        schema = FunctionSchema.parse(kernel.function.schema)
        with local.parametrize(
            use_const_ref_for_mutable_tensors=False, use_ilistref_for_tensor_lists=False
        ):
            declaration = NativeSignature(schema, symint=False).decl(name=kernel.name)
        declared = declared_signature(f"TORCH_API {declaration};", kernel.name)
        assert declared is not None
        assert defined_signature(host, kernel.name) == declared


def test_a_sum_of_ones_own(tmp_path):
    formula = Formula("x * x", "sqrt(sum)")
    made = make_scaffold("norm", "aten::logsumexp", tmp_path / "norm", formula=formula)
    text = (made.directory / "aten/src/ATen/native/mps/kernels/Norm.metal").read_text()
    assert "return x * x;" in text
    assert "return sqrt(state);" in text


class ApplyTest(CheckoutTestCase):
    def test_every_kind_applies_and_can_be_taken_off(self) -> None:
        root = self.directory / "skeleton"
        make_skeleton(root)
        for kind, op in OPS.items():
            with self.subTest(kind):
                made = make_scaffold("mine", op, self.directory / kind)
                functions = [kernel.function for kernel in made.target.kernels]
                applied = self.mpskit("apply", root, "--patch-set", made.directory)
                self.assertEqual(applied.exit_code, 0, applied.output)
                again = self.mpskit("apply", root, "--patch-set", made.directory)
                self.assertIn("nothing to do", again.output)
                patch = load_patch_set(made.directory).patches[0]
                self.assertEqual(
                    [expected.function for expected in patch.expects],
                    [function.name for function in functions],
                )
                self.assertEqual(self.mpskit("revert", root).exit_code, 0)


class PatchSetOptionTest(CheckoutTestCase):
    COMMANDS = (
        ("list",),
        ("check",),
        ("test",),
        ("bench",),
        *((name, "CHECKOUT") for name in ("status", "apply", "diff", "refresh", "build")),
        ("pr", "CHECKOUT", "--check"),
        ("demo", "DEMO"),
    )

    def test_a_folder_that_is_no_patch_set(self) -> None:
        places = {"CHECKOUT": str(self.root), "DEMO": str(self.directory / "demo")}
        nowhere = self.directory / "nowhere"
        for command, *rest in self.COMMANDS:
            with self.subTest(command):
                arguments = (places.get(word, word) for word in rest)
                outcome = self.mpskit(command, *arguments, "--patch-set", nowhere)
                self.assertEqual(outcome.exit_code, 1, outcome.output)
                self.assertIn("DIR/nowhere", outcome.output)
                self.assertIn("  next: ", outcome.output)

    def test_the_environment_names_one(self) -> None:
        with mock.patch.dict(os.environ, {"MPSKIT_PATCH_SET": str(self.patch_set)}):
            self.assertIn("Move square to Metal", self.mpskit("list").output)

    def test_check_takes_all_of_a_patch_sets_kernels(self) -> None:
        made = make_scaffold("mine", OPS["elementwise"], self.directory / "mine")
        outcome = self.mpskit("check", "--patch-set", made.directory)
        self.assertIn("0 errors, 0 warnings in 1 file", outcome.output)
        self.assertEqual(self.mpskit("check").exit_code, 2)

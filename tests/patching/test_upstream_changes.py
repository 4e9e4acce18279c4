# ruff: noqa: E501, W293 (expected output stands as it is printed)
"""`status` shows what upstream has changed, since the patch set was applied, where it edits."""

from __future__ import annotations

import json

from checkouts import ACTIVATION, CheckoutTestCase

BRANCH = "mpskit/square"
KERNEL = "aten/src/ATen/native/mps/kernels/Square.metal"


class UpstreamChangesTest(CheckoutTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.apply()
        self.git("checkout", "--quiet", "main")

    def status(self) -> str:
        return str(self.mpskit("status", self.root, "--patch-set", self.patch_set))

    def upstream(self, old: str, new: str) -> None:
        text = (self.root / ACTIVATION).read_text()
        self.assertIn(old, text)
        self.commit({ACTIVATION: text.replace(old, new)}, "Upstream")

    def test_a_definition_that_was_changed(self) -> None:
        self.upstream("self.numel() == 0", "self.numel() < 1")
        self.assertExpectedInline(
            self.status(),
            """\
DIR/pytorch: PyTorch 2.13.0, has c10/metal, on main
square: to do
  to do       aten/src/ATen/native/mps/kernels/Square.metal: add
  to do       aten/src/ATen/native/mps/operations/Square.mm: add
  changed upstream since  aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(square_mps_out)
      diff --git a/aten/src/ATen/native/mps/operations/Activation.mm b/aten/src/ATen/native/mps/operations/Activation.mm
      index ID..ID 100644
      --- a/aten/src/ATen/native/mps/operations/Activation.mm
      +++ b/aten/src/ATen/native/mps/operations/Activation.mm
      @@ -10,7 +10,7 @@ Tensor neighbour_before(const Tensor& self) {
       // The square of each element.
       TORCH_IMPL_FUNC(square_mps_out)(const Tensor& self, const Tensor& out) {
         const char* text = "}";
      -  if (self.numel() == 0) {
      +  if (self.numel() < 1) {
           return;
         }
       }
applied on branch mpskit/square, base ID
exit code 0
""",
        )
        self.git("checkout", "--quiet", BRANCH)
        self.assertExpectedInline(
            self.status(),
            """\
DIR/pytorch: PyTorch 2.13.0, has c10/metal, on mpskit/square
square: done
  done        aten/src/ATen/native/mps/kernels/Square.metal: add
  done        aten/src/ATen/native/mps/operations/Square.mm: add
  changed upstream since  aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(square_mps_out)
      diff --git a/aten/src/ATen/native/mps/operations/Activation.mm b/aten/src/ATen/native/mps/operations/Activation.mm
      index ID..ID 100644
      --- a/aten/src/ATen/native/mps/operations/Activation.mm
      +++ b/aten/src/ATen/native/mps/operations/Activation.mm
      @@ -10,7 +10,7 @@ Tensor neighbour_before(const Tensor& self) {
       // The square of each element.
       TORCH_IMPL_FUNC(square_mps_out)(const Tensor& self, const Tensor& out) {
         const char* text = "}";
      -  if (self.numel() == 0) {
      +  if (self.numel() < 1) {
           return;
         }
       }
applied on branch mpskit/square, base ID
exit code 0
""",
        )

    def test_a_definition_that_is_gone(self) -> None:
        self.upstream("square_mps_out)", "squared_mps_out)")
        self.assertExpectedInline(
            self.status(),
            """\
DIR/pytorch: PyTorch 2.13.0, has c10/metal, on main
square: impossible
  to do       aten/src/ATen/native/mps/kernels/Square.metal: add
  to do       aten/src/ATen/native/mps/operations/Square.mm: add
  impossible  aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(square_mps_out) (looked for the definition of TORCH_IMPL_FUNC(square_mps_out) in aten/src/ATen/native/mps/operations/Activation.mm and in aten/src/ATen/native/mps/operations/Square.mm, and neither has it)
      diff --git a/aten/src/ATen/native/mps/operations/Activation.mm b/aten/src/ATen/native/mps/operations/Activation.mm
      index ID..ID 100644
      --- a/aten/src/ATen/native/mps/operations/Activation.mm
      +++ b/aten/src/ATen/native/mps/operations/Activation.mm
      @@ -8,7 +8,7 @@ Tensor neighbour_before(const Tensor& self) {
       }
       
       // The square of each element.
      -TORCH_IMPL_FUNC(square_mps_out)(const Tensor& self, const Tensor& out) {
      +TORCH_IMPL_FUNC(squared_mps_out)(const Tensor& self, const Tensor& out) {
         const char* text = "}";
         if (self.numel() == 0) {
           return;
applied on branch mpskit/square, base ID
exit code 1
""",
        )

    def test_changes_elsewhere_do_not_count(self) -> None:
        self.upstream("neighbour_before", "neighbour_ahead")
        self.assertNotIn("changed upstream", self.status())
        self.upstream("  if (self.numel() == 0)", "    if (self.numel() == 0)")
        self.assertNotIn("changed upstream", self.status())

    def test_a_file_that_upstream_has_too_now(self) -> None:
        self.commit({KERNEL: "upstream's\n"}, "Upstream")
        self.git("checkout", "--quiet", BRANCH)
        status = self.status()
        self.assertIn(f"changed upstream since  {KERNEL}: add", status)
        self.assertIn("      +upstream's\n", status)

    def test_for_programs(self) -> None:
        self.upstream("self.numel() == 0", "self.numel() < 1")
        output = self.mpskit("status", self.root, "--patch-set", self.patch_set, "--json").output
        edit = json.loads(output)["patches"][0]["edits"][-1]
        self.assertEqual(edit["state"], "changed upstream since")
        self.assertIn("-  if (self.numel() == 0) {\n", edit["difference"])

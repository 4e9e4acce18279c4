# ruff: noqa: E501, W293 (expected output stands as it is printed)
"""Our own patch set on every layout that it declares, and on ones that it does not."""

from __future__ import annotations

from collections.abc import Mapping

from checkouts import ACTIVATION, OPERATIONS, CheckoutTestCase, Outcome, Snapshot, make_checkout
from layouts import (
    KERNELS,
    LAYOUTS,
    LOG_SOFTMAX_KERNELS,
    MPSGRAPH,
    SHARED_BACKWARD_KERNELS,
    SHARED_KERNELS,
    SOFTMAX,
    SOFTMAX_KERNELS,
)

from mpskit.checkout import Checkout
from mpskit.patching import load_patch_set, plan

OURS = f"{OPERATIONS}/LogSoftmax.mm"


class LayoutTestCase(CheckoutTestCase):
    def make(self, files: Mapping[str, str | bytes]) -> None:
        self.root = self.directory / f"base{len(list(self.directory.iterdir()))}"
        make_checkout(self.root, files)

    def run_here(self, command: str, *options: str) -> Outcome:
        return self.mpskit(command, self.root, *options)

    def changed(self) -> str:
        return self.git("diff", "--name-status", "--no-renames", "main", "HEAD")


class DeclaredLayoutTest(LayoutTestCase):
    def test_each_is_told_from_the_others(self) -> None:
        for names, files in LAYOUTS.items():
            with self.subTest(names):
                self.make(files)
                planned = plan(Checkout.open(self.root), load_patch_set())
                self.assertEqual(tuple(item.layout for item in planned.patches), names)

    def test_on_mpsgraph_the_definition_goes(self) -> None:
        self.make(MPSGRAPH)
        self.run_here("apply")
        self.assertExpectedInline(
            self.changed(),
            """\
A	aten/src/ATen/native/mps/kernels/LogSoftmax.h
A	aten/src/ATen/native/mps/kernels/LogSoftmax.metal
A	aten/src/ATen/native/mps/kernels/LogSoftmaxBackward.h
A	aten/src/ATen/native/mps/kernels/LogSoftmaxBackward.metal
A	aten/src/ATen/native/mps/kernels/LogSoftmaxUnits.h
M	aten/src/ATen/native/mps/operations/Activation.mm
A	aten/src/ATen/native/mps/operations/LogSoftmax.mm
A	aten/src/ATen/native/mps/operations/LogSoftmaxBackward.mm
A	aten/src/ATen/native/mps/operations/LogSoftmaxBackwardPlan.h
A	aten/src/ATen/native/mps/operations/LogSoftmaxLaunch.h
A	aten/src/ATen/native/mps/operations/LogSoftmaxPlan.h
A	aten/src/ATen/native/mps/operations/LogSoftmaxPlanCommon.h
A	test/test_mps_log_softmax_backward.py
""",
        )

    def test_kernels_of_its_own_are_replaced_and_nothing_else(self) -> None:
        self.make(LOG_SOFTMAX_KERNELS)
        self.run_here("apply")
        self.assertExpectedInline(
            self.changed(),
            """\
M	aten/src/ATen/native/mps/kernels/LogSoftmax.h
M	aten/src/ATen/native/mps/kernels/LogSoftmax.metal
A	aten/src/ATen/native/mps/kernels/LogSoftmaxBackward.h
A	aten/src/ATen/native/mps/kernels/LogSoftmaxBackward.metal
A	aten/src/ATen/native/mps/kernels/LogSoftmaxUnits.h
M	aten/src/ATen/native/mps/operations/Activation.mm
M	aten/src/ATen/native/mps/operations/LogSoftmax.mm
A	aten/src/ATen/native/mps/operations/LogSoftmaxBackward.mm
A	aten/src/ATen/native/mps/operations/LogSoftmaxBackwardPlan.h
A	aten/src/ATen/native/mps/operations/LogSoftmaxLaunch.h
A	aten/src/ATen/native/mps/operations/LogSoftmaxPlan.h
A	aten/src/ATen/native/mps/operations/LogSoftmaxPlanCommon.h
A	test/test_mps_log_softmax_backward.py
""",
        )

    def test_shared_kernels_lose_log_softmax_alone(self) -> None:
        self.make(SHARED_KERNELS)
        self.run_here("apply")
        self.assertExpectedInline(
            self.neutral(self.git("diff", "-U1", "main", "HEAD", "--", SOFTMAX, SOFTMAX_KERNELS)),
            """\
diff --git a/aten/src/ATen/native/mps/kernels/SoftMax.metal b/aten/src/ATen/native/mps/kernels/SoftMax.metal
index ID..ID 100644
--- a/aten/src/ATen/native/mps/kernels/SoftMax.metal
+++ b/aten/src/ATen/native/mps/kernels/SoftMax.metal
@@ -5,3 +5,2 @@ template <typename T, bool log_softmax>
   REGISTER_SOFTMAX_OP(DTYPE, IDX_T, SUFFIX, softmax, false)     \\
-  REGISTER_SOFTMAX_OP(DTYPE, IDX_T, SUFFIX, log_softmax, true)  \\
   REGISTER_SOFTMAX_PARTIAL(DTYPE, IDX_T, SUFFIX)
diff --git a/aten/src/ATen/native/mps/operations/SoftMax.mm b/aten/src/ATen/native/mps/operations/SoftMax.mm
index ID..ID 100644
--- a/aten/src/ATen/native/mps/operations/SoftMax.mm
+++ b/aten/src/ATen/native/mps/operations/SoftMax.mm
@@ -1,2 +1 @@
-#include <ATen/ops/_log_softmax_native.h>
 #include <ATen/ops/_softmax_native.h>
@@ -14,7 +13,2 @@ TORCH_IMPL_FUNC(softmax_mps_out)
 
-TORCH_IMPL_FUNC(log_softmax_mps_out)
-(const Tensor& self, const int64_t dim, const bool half_to_float, const Tensor& out) {
-  run(self, dim, out, true);
-}
-
 } // namespace at::native
""",
        )

    def test_shared_backward_kernels_lose_log_softmaxs_alone(self) -> None:
        self.make(SHARED_BACKWARD_KERNELS)
        self.run_here("apply")
        self.assertExpectedInline(
            self.neutral(self.git("diff", "-U1", "HEAD~1", "HEAD", "--", SOFTMAX, ACTIVATION)),
            """\
diff --git a/aten/src/ATen/native/mps/operations/SoftMax.mm b/aten/src/ATen/native/mps/operations/SoftMax.mm
index ID..ID 100644
--- a/aten/src/ATen/native/mps/operations/SoftMax.mm
+++ b/aten/src/ATen/native/mps/operations/SoftMax.mm
@@ -1,2 +1 @@
-#include <ATen/ops/_log_softmax_backward_data_native.h>
 #include <ATen/ops/_softmax_native.h>
@@ -14,7 +13,2 @@ TORCH_IMPL_FUNC(softmax_mps_out)
 
-TORCH_IMPL_FUNC(log_softmax_backward_mps_out)
-(const Tensor& grad, const Tensor& output, int64_t dim, ScalarType dtype, const Tensor& out) {
-  run_backward(grad, output, dim, out, true);
-}
-
 } // namespace at::native
""",
        )

    def test_nothing_of_the_graph_is_left(self) -> None:
        self.make(MPSGRAPH)
        self.run_here("apply")
        self.assertNotIn("softmax", self.git("show", f"HEAD:{ACTIVATION}"))
        # Each patch takes what nothing needs from then on.
        for removed in ("_log_softmax_backward_data_native.h", "_log_softmax_native.h"):
            log = self.git("log", "--format=%s", f"-S{removed}", "main..HEAD", "--", ACTIVATION)
            self.assertIn("backward" if "backward" in removed else "forward", log)

    def test_status_names_the_layout(self) -> None:
        self.make(SHARED_KERNELS)
        self.assertExpectedInline(
            str(self.run_here("status")),
            """\
DIR/base3: PyTorch 2.14.0a0, has c10/metal, on main
log_softmax: to do, on a base of layout softmax-kernels
  to do       aten/src/ATen/native/mps/kernels/LogSoftmax.h: add
  to do       aten/src/ATen/native/mps/kernels/LogSoftmax.metal: add
  to do       aten/src/ATen/native/mps/kernels/LogSoftmaxUnits.h: add
  to do       aten/src/ATen/native/mps/operations/LogSoftmax.mm: add
  to do       aten/src/ATen/native/mps/operations/LogSoftmaxLaunch.h: add
  to do       aten/src/ATen/native/mps/operations/LogSoftmaxPlan.h: add
  to do       aten/src/ATen/native/mps/operations/LogSoftmaxPlanCommon.h: add
  done        test/test_mps.py: insert ahead of class TestPad(TestCaseMPS): (left out: the base has no such file)
  done        test/test_mps.py: insert ahead of instantiate_parametrized_tests(TestMPS) (left out: the base has no such file)
  done        torch/testing/_internal/common_methods_invocations.py: replace aten_backward_name='_log_softmax_backward_data', ... (left out: the base has no such file)
  done        torch/testing/_internal/opinfo/definitions/_masked.py: replace "masked.log_softmax", ... (left out: the base has no such file)
  done        torch/testing/_internal/opinfo/definitions/_masked.py: replace # NotImplementedError: "log_softmax_lastdim_kernel_impl" not implemented for * ... (left out: the base has no such file)
  to do       aten/src/ATen/native/mps/operations/SoftMax.mm: remove TORCH_IMPL_FUNC(log_softmax_mps_out)
  to do       aten/src/ATen/native/mps/operations/SoftMax.mm: remove #include <ATen/ops/_log_softmax_native.h>
  to do       aten/src/ATen/native/mps/kernels/SoftMax.metal: remove REGISTER_SOFTMAX_OP(DTYPE, IDX_T, SUFFIX, log_softmax, true)
log_softmax_backward: to do, on a base of layout mpsgraph
  to do       aten/src/ATen/native/mps/kernels/LogSoftmaxBackward.h: add
  to do       aten/src/ATen/native/mps/kernels/LogSoftmaxBackward.metal: add
  to do       aten/src/ATen/native/mps/operations/LogSoftmaxBackward.mm: add
  to do       aten/src/ATen/native/mps/operations/LogSoftmaxBackwardPlan.h: add
  to do       test/test_mps_log_softmax_backward.py: add
  to do       aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(log_softmax_backward_mps_out)
  to do       aten/src/ATen/native/mps/operations/Activation.mm: remove #include <ATen/ops/_log_softmax_backward_data_native.h>
exit code 0
""",
        )


class UnknownLayoutTest(LayoutTestCase):
    """Refused, with what was looked for and where; nothing has changed then."""

    def refuse(self, files: Mapping[str, str | bytes]) -> str:
        self.make(files)
        before = Snapshot.take(self.root)
        outcome = self.run_here("apply")
        self.assert_refused(outcome, before)
        return outcome.output

    def test_the_op_is_defined_nowhere_that_is_known(self) -> None:
        moved = {f"{OPERATIONS}/Other.mm": LOG_SOFTMAX_KERNELS[OURS]}
        files = {path: text for path, text in LOG_SOFTMAX_KERNELS.items() if path != OURS}
        self.assertExpectedInline(
            self.refuse({**files, **moved}),
            """\
error: Patch log_softmax does not fit this base: the base has none of the known layouts: looked for TORCH_IMPL_FUNC(log_softmax_mps_out) in aten/src/ATen/native/mps/operations/Activation.mm (log_softmax on MPSGraph, beside the activations), aten/src/ATen/native/mps/operations/LogSoftmax.mm (log_softmax on Metal kernels of its own), aten/src/ATen/native/mps/operations/SoftMax.mm (softmax and log_softmax on Metal kernels that both share).
  next: `mpskit status` shows each edit; upstream may have moved this code, so look for a newer patch set.
""",
        )

    def test_the_op_is_defined_twice(self) -> None:
        self.assertExpectedInline(
            self.refuse({**SHARED_KERNELS, ACTIVATION: MPSGRAPH[ACTIVATION]}),
            """\
error: Patch log_softmax does not fit this base: TORCH_IMPL_FUNC(log_softmax_mps_out) is defined in aten/src/ATen/native/mps/operations/Activation.mm and in aten/src/ATen/native/mps/operations/SoftMax.mm, where one of them was expected.
  next: `mpskit status` shows each edit; upstream may have moved this code, so look for a newer patch set.
""",
        )

    def test_the_registration_of_the_kernels_has_another_form(self) -> None:
        text = SHARED_KERNELS[SOFTMAX_KERNELS].replace("log_softmax, true", "log_softmax, 1")
        self.assertExpectedInline(
            self.refuse({**SHARED_KERNELS, SOFTMAX_KERNELS: text}),
            """\
error: Patch log_softmax does not fit this base: looked for `REGISTER_SOFTMAX_OP(DTYPE, IDX_T, SUFFIX, log_softmax, true)` in aten/src/ATen/native/mps/kernels/SoftMax.metal, and it is not there.
  next: `mpskit status` shows each edit; upstream may have moved this code, so look for a newer patch set.
""",
        )

    def test_the_file_to_replace_registers_another_op(self) -> None:
        text = LOG_SOFTMAX_KERNELS[OURS]
        more = text + text.replace("log_softmax_mps_out", "log_softmax_backward_mps_out")
        self.assertExpectedInline(
            self.refuse({**LOG_SOFTMAX_KERNELS, OURS: more}),
            """\
error: Patch log_softmax does not fit this base: upstream's aten/src/ATen/native/mps/operations/LogSoftmax.mm also registers log_softmax_backward_mps_out, and ours does not.
  next: `mpskit status` shows each edit; upstream may have moved this code, so look for a newer patch set.
""",
        )

    def test_kernels_of_its_own_beside_the_graph(self) -> None:
        kernels = {f"{KERNELS}/LogSoftmax.metal": "kernel void other() {}\n"}
        self.assertExpectedInline(
            self.refuse({**MPSGRAPH, **kernels}),
            """\
error: Patch log_softmax does not fit this base: the base has its own aten/src/ATen/native/mps/kernels/LogSoftmax.metal, with another text.
  next: `mpskit status` shows each edit; upstream may have moved this code, so look for a newer patch set.
""",
        )

# ruff: noqa: E501 (expected output stands as it is printed)
"""What `list`, `status` and `diff` print, and that nothing else happens."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from checkouts import ACTIVATION, CheckoutTestCase, Outcome, Snapshot, write_files


class ReadingCommandsTest(CheckoutTestCase):
    def run_here(self, command: str, *options: str) -> Outcome:
        """Run a command on the checkout; it must not change a byte, nor write objects."""
        before, objects = Snapshot.take(self.root), self.git("count-objects")
        outcome = self.mpskit(command, self.root, "--patch-set", self.patch_set, *options)
        self.assertEqual(Snapshot.take(self.root), before)
        self.assertEqual(self.git("count-objects"), objects)
        return outcome

    def test_list(self) -> None:
        self.assertExpectedInline(
            str(self.mpskit("list", "--patch-set", self.patch_set)),
            """\
square: [MPS] Move square to Metal
  add     aten/src/ATen/native/mps/kernels/Square.metal
  add     aten/src/ATen/native/mps/operations/Square.mm
  edit    aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(square_mps_out)
  needs   c10/metal/utils.h (PyTorch 2.7 and newer)
  needs   _square.out dispatched to square_mps_out on MPS
exit code 0
""",
        )
        data = json.loads(self.mpskit("list", "--patch-set", self.patch_set, "--json").output)
        self.assertEqual(data["patches"][0]["edits"][0]["kind"], "remove_definition")
        self.assertEqual(data["patches"][0]["requires"][0]["since"], "2.7")

    def test_status_of_a_base_that_fits(self) -> None:
        self.assertExpectedInline(
            str(self.run_here("status")),
            """\
DIR/pytorch: PyTorch 2.13.0, has c10/metal, on main
square: to do
  to do       aten/src/ATen/native/mps/kernels/Square.metal: add
  to do       aten/src/ATen/native/mps/operations/Square.mm: add
  to do       aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(square_mps_out)
exit code 0
""",
        )
        data = json.loads(self.run_here("status", "--json").output)
        self.assertEqual(data["state"], "to do")
        self.assertEqual(data["version"], "2.13.0")
        self.assertTrue(data["c10_metal"])
        self.assertEqual({edit["state"] for edit in data["patches"][0]["edits"]}, {"to do"})

    def test_status_when_applied(self) -> None:
        self.apply()
        self.assertExpectedInline(
            str(self.run_here("status")),
            """\
DIR/pytorch: PyTorch 2.13.0, has c10/metal, on mpskit/square
square: done
  done        aten/src/ATen/native/mps/kernels/Square.metal: add
  done        aten/src/ATen/native/mps/operations/Square.mm: add
  done        aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(square_mps_out)
applied on branch mpskit/square, base ID
exit code 0
""",
        )
        data = json.loads(self.run_here("status", "--json").output)
        self.assertEqual(data["state"], "done")
        self.assertEqual(data["applied"][0]["branch"], "refs/heads/mpskit/square")

    def test_status_of_a_base_that_does_not_fit(self) -> None:
        self.git("rm", "--quiet", "-r", "c10")
        self.commit({ACTIVATION: "namespace at::native {}\n"})
        self.assertExpectedInline(
            str(self.run_here("status")),
            """\
DIR/pytorch: PyTorch 2.13.0, has no c10/metal, on main
square: impossible
  impossible  no c10/metal/utils.h: the kernels include it
  to do       aten/src/ATen/native/mps/kernels/Square.metal: add
  to do       aten/src/ATen/native/mps/operations/Square.mm: add
  impossible  aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(square_mps_out) (looked for the definition of TORCH_IMPL_FUNC(square_mps_out) in aten/src/ATen/native/mps/operations/Activation.mm and in aten/src/ATen/native/mps/operations/Square.mm, and neither has it)
exit code 1
""",
        )
        outcome = self.run_here("status", "--json")
        self.assertEqual(outcome.exit_code, 1)
        data = json.loads(outcome.output)
        self.assertEqual(data["patches"][0]["unmet"][0]["since"], "2.7")
        self.assertEqual(data["patches"][0]["edits"][-1]["state"], "impossible")

    def test_status_names_what_is_in_the_way(self) -> None:
        write_files(self.root, {ACTIVATION: "mine\n"})
        self.git("bisect", "start")
        self.assertExpectedInline(
            str(self.run_here("status")),
            """\
DIR/pytorch: PyTorch 2.13.0, has c10/metal, on main
square: to do
  to do       aten/src/ATen/native/mps/kernels/Square.metal: add
  to do       aten/src/ATen/native/mps/operations/Square.mm: add
  to do       aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(square_mps_out)
in the way: a bisect waits to be ended with `git bisect reset`
in the way: aten/src/ATen/native/mps/operations/Activation.mm is modified
exit code 0
""",
        )

    def test_diff_before_and_after_is_the_same(self) -> None:
        before = self.run_here("diff")
        self.assertIn("-TORCH_IMPL_FUNC(square_mps_out)", before.output)
        self.assertIn("+kernel void square() {}", before.output)
        stat = self.run_here("diff", "--stat")
        self.assertExpectedInline(
            str(stat),
            """\
 aten/src/ATen/native/mps/kernels/Square.metal     | 1 +
 aten/src/ATen/native/mps/operations/Activation.mm | 8 --------
 aten/src/ATen/native/mps/operations/Square.mm     | 2 ++
 3 files changed, 3 insertions(+), 8 deletions(-)
exit code 0
""",
        )
        self.apply()
        self.assertEqual(self.run_here("diff"), before)
        self.assertEqual(self.run_here("diff", "--stat"), stat)
        self.commit({"README.md": "mine\n"})
        self.assertEqual(self.run_here("diff"), before)

    def test_diff_for_programs(self) -> None:
        data = json.loads(self.run_here("diff", "--stat", "--json").output)
        self.assertIn({"path": ACTIVATION, "added": 0, "deleted": 8}, data)

    def test_diff_of_a_base_that_does_not_fit(self) -> None:
        self.commit({ACTIVATION: "namespace at::native {}\n"})
        outcome = self.run_here("diff")
        self.assertEqual(outcome.exit_code, 1)
        self.assertIn("  next: ", outcome.output)

    def test_a_patch_set_that_is_none(self) -> None:
        outcome = self.mpskit("status", self.root, "--patch-set", self.root)
        self.assertExpectedInline(
            str(outcome),
            """\
error: DIR/pytorch is no patch set: it has no series.toml.
  next: Name the directory that holds series.toml with --patch-set DIR.
exit code 1
""",
        )

    def test_usage(self) -> None:
        self.assertEqual(self.mpskit("apply", "--no-such-option").exit_code, 2)

    def test_apply_dry_run(self) -> None:
        self.assertExpectedInline(
            str(self.run_here("apply", "--dry-run")),
            """\
would be applied on the new branch mpskit/square
  [MPS] Move square to Metal
    aten/src/ATen/native/mps/kernels/Square.metal: add
    aten/src/ATen/native/mps/operations/Square.mm: add
    aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(square_mps_out)
exit code 0
""",
        )
        self.assertExpectedInline(
            str(self.apply()),
            """\
applied on the new branch mpskit/square
  [MPS] Move square to Metal
    aten/src/ATen/native/mps/kernels/Square.metal: add
    aten/src/ATen/native/mps/operations/Square.mm: add
    aten/src/ATen/native/mps/operations/Activation.mm: remove TORCH_IMPL_FUNC(square_mps_out)
  undo with: mpskit revert DIR/pytorch
exit code 0
""",
        )


class SpeedTest(CheckoutTestCase):
    def test_status_and_dry_run_on_twenty_thousand_files(self) -> None:
        # In the index and in HEAD, but not in the work tree: that is enough to make git slow.
        blob = self.git("rev-parse", "HEAD:version.txt").strip()
        paths = (f"third_party/d{n // 100}/f{n}.h" for n in range(20_000))
        subprocess.run(
            ["git", "-C", str(self.root), "update-index", "--index-info"],
            input="".join(f"100644 {blob}\t{path}\n" for path in paths).encode(),
            check=True,
        )
        self.git("commit", "--quiet", "-m", "Many files")
        commands = "status, apply --dry-run, apply, apply --update, refresh, status, revert"
        for command in map(str.split, commands.split(", ")):
            patch_set = ["--patch-set", str(self.patch_set)] if command != ["revert"] else []
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "mpskit", *command, str(self.root), *patch_set],
                check=True, capture_output=True,
            )  # fmt: skip
            seconds = time.perf_counter() - start
            # A second on a quiet machine, and room for a busy one.
            self.assertLess(seconds, 4, command)


def test_own_patch_set_is_listed_from_anywhere(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "mpskit", "list"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "log_softmax: [MPS]" in result.stdout

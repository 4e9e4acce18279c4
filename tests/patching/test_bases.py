# ruff: noqa: E501 (expected output stands as it is printed)
"""Every base with every operation: what comes of it is printed as a table at the end of the run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping

import pytest
from checkouts import ACTIVATION, OPERATIONS, CheckoutTestCase, Snapshot, make_checkout, run_git
from debian_source import unpack_debian_pytorch
from layouts import (
    KERNELS,
    LAYOUTS,
    LOG_SOFTMAX_KERNELS,
    MPSGRAPH,
    SHARED_KERNELS,
    SOFTMAX_KERNELS,
)

from mpskit.patching import default_patch_set_directory, load_patch_set

KERNEL = f"{KERNELS}/LogSoftmax.metal"
DEFINITION = re.compile(r"^TORCH_IMPL_FUNC\((\w+)\)", re.MULTILINE)


class BaseTestCase(CheckoutTestCase):
    @pytest.fixture(autouse=True)
    def _report(self, record_property: Callable[[str, object], None]) -> None:
        self.report = lambda base, outcomes: record_property(f"base: {base}", "\t".join(outcomes))

    def setUp(self) -> None:
        super().setUp()
        self.patch_set = self.directory / "own"
        shutil.copytree(default_patch_set_directory(), self.patch_set)

    def make(self, files: Mapping[str, str | bytes]) -> None:
        shutil.rmtree(self.root)
        make_checkout(self.root, files)

    def run_here(self, command: str, *options: str) -> tuple[int, str]:
        if command != "revert":
            options = (*options, "--patch-set", str(self.patch_set))
        outcome = self.mpskit(command, self.root, *options)
        return outcome.exit_code, outcome.output

    def definitions(self) -> list[str]:
        """Every op that the MPS sources of the tree register, sorted."""
        texts = (self.root / OPERATIONS).glob("*.mm")
        return sorted(name for path in texts for name in DEFINITION.findall(path.read_text()))

    def fits(self, base: str, *options: str) -> None:
        """Every operation does its work, and in the end all is as before."""
        before, ops = Snapshot.take(self.root), self.definitions()
        found = ["fits" if self.run_here("status", *options)[0] == 0 else "refused"]
        found.append(self.done("would be applied", "apply", "--dry-run", *options))
        found.append(self.done("applied on", "apply", *options))
        # Every op is still registered, and none of them twice.
        self.assertEqual(self.definitions(), ops)
        found.append(self.done("already applied", "apply", *options))
        kernel = self.patch_set / KERNEL
        kernel.write_text(kernel.read_text() + "// in the patch set\n")
        found.append(self.done("updated", "apply", "--update", *options))
        edited = self.root / KERNEL
        edited.write_text(edited.read_text() + "// in the checkout\n")
        found.append(self.done("taken into", "refresh"))
        self.assertTrue(kernel.read_text().endswith("// in the checkout\n"))
        self.assertEqual(self.git("status", "--porcelain"), "")
        found.append(self.done("deleted branch", "revert"))
        now = Snapshot.take(self.root)
        self.assertEqual(now.without_stat_cache(), before.without_stat_cache())
        self.report(base, found)

    def done(self, says: str, command: str, *options: str) -> str:
        code, output = self.run_here(command, *options)
        self.assertEqual(code, 0, output)
        self.assertTrue(output.startswith(says), output)
        return "done"

    def refused(self, base: str) -> None:
        """Status and apply say why it does not fit, and not a byte has changed."""
        before = Snapshot.take(self.root)
        found = []
        for command in (["status"], ["apply", "--dry-run"], ["apply"]):
            code, output = self.run_here(*command)
            self.assertEqual(code, 1, output)
            found.append("refused")
        self.assertEqual(Snapshot.take(self.root), before)
        reason = output.partition(": ")[2].splitlines()[0]
        self.report(f"{base}: {reason}", [*found, *["-"] * 4])


class GeneratedTest(BaseTestCase):
    def test_each_declared_layout(self) -> None:
        for names, files in LAYOUTS.items():
            with self.subTest(names):
                self.make(files)
                self.fits(f"generated, layouts {' and '.join(names)}")

    def test_others(self) -> None:
        ours = f"{OPERATIONS}/LogSoftmax.mm"
        host = LOG_SOFTMAX_KERNELS[ours]
        moved = {path: text for path, text in LOG_SOFTMAX_KERNELS.items() if path != ours}
        other_form = SHARED_KERNELS[SOFTMAX_KERNELS].replace("log_softmax, true", "log_softmax, 1")
        backward = host + host.replace("log_softmax_mps_out", "log_softmax_backward_mps_out")
        bases = {
            "defined elsewhere": {**moved, f"{OPERATIONS}/Other.mm": host},
            "defined twice": {**SHARED_KERNELS, ACTIVATION: MPSGRAPH[ACTIVATION]},
            "registered in another way": {**SHARED_KERNELS, SOFTMAX_KERNELS: other_form},
            "more in the file than ours has": {**LOG_SOFTMAX_KERNELS, ours: backward},
            "kernels beside the graph": {**MPSGRAPH, KERNEL: "kernel void other() {}\n"},
        }
        for name, files in bases.items():
            with self.subTest(name):
                self.make(files)
                self.refused(f"generated, {name}")


class SkeletonTest(BaseTestCase):
    def test_it_fits(self) -> None:
        shutil.rmtree(self.root)
        self.assertEqual(self.mpskit("skeleton", self.root).exit_code, 0)
        self.fits("skeleton of the installed torch")


class DebianTest(BaseTestCase):
    """A real, older tree."""

    def test_it_is_refused_for_its_age_and_fits_when_told_to(self) -> None:
        shutil.rmtree(self.root)
        unpack_debian_pytorch(self.root)
        run_git(self.root, "init", "--quiet", "--initial-branch=main")
        run_git(self.root, "add", "--all", "--force")
        run_git(self.root, "commit", "--quiet", "-m", "PyTorch 2.6.0 as in Debian trixie")
        self.assertExpectedInline(
            str(self.mpskit("apply", self.root)),
            """\
error: This base is too old for patch log_softmax: no c10/metal/utils.h: the tree predates the c10/metal headers, which the kernels are written against.
  next: Check out PyTorch 2.9 or newer, or go on regardless with --allow-old-base.
exit code 1
""",
        )
        self.assertIn("PyTorch 2.6.0a0, has no c10/metal", self.run_here("status")[1])
        self.refused("Debian's PyTorch 2.6.0")

        original = (self.root / ACTIVATION).read_text()
        self.fits("Debian's PyTorch 2.6.0, with --allow-old-base", "--allow-old-base")
        self.run_here("apply", "--allow-old-base")
        patched = (self.root / ACTIVATION).read_text()
        expected = original
        for kernel, header in (
            ("log_softmax_mps_out", "_log_softmax_native.h"),
            ("log_softmax_backward_mps_out", "_log_softmax_backward_data_native.h"),
        ):
            include = f"#include <ATen/ops/{header}>\n"
            self.assertEqual(original.count(include), 1)
            expected = expected.replace(definition_of(kernel, original), "").replace(include, "")
        self.assertEqual(patched, expected)
        files = [file.path for patch in load_patch_set().patches for file in patch.files]
        changed = self.git("diff", "--name-only", "HEAD~2", "HEAD").splitlines()
        self.assertEqual(sorted(changed), sorted([ACTIVATION, *files]))


def definition_of(kernel: str, text: str) -> str:
    """The definition as clang-format lays it out: up to the first brace at a line's start."""
    start = text.index(f"TORCH_IMPL_FUNC({kernel})")
    end = text.index("\n}\n", start) + len("\n}\n")
    definition = text[start:end]
    assert text.count(definition) == 1
    assert definition.count("{") == definition.count("}")
    assert text[end] == "\n"
    return definition + "\n"

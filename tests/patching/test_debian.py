# ruff: noqa: E501 (expected output stands as it is printed)
"""Our own patch set on a real, older tree."""

from __future__ import annotations

from checkouts import ACTIVATION, CheckoutTestCase, Snapshot, run_git
from debian_source import unpack_debian_pytorch

from mpskit.patching import load_patch_set

HEAD = "TORCH_IMPL_FUNC(log_softmax_mps_out)"


class DebianTest(CheckoutTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.root = self.directory / "debian"
        unpack_debian_pytorch(self.root)
        run_git(self.root, "init", "--quiet")
        run_git(self.root, "add", "--all", "--force")
        run_git(self.root, "commit", "--quiet", "-m", "PyTorch 2.6.0 as in Debian trixie")

    def test_it_is_refused_for_its_age_and_taken_when_told_to(self) -> None:
        before = Snapshot.take(self.root)
        outcome = self.mpskit("apply", self.root)
        self.assert_refused(outcome, before)
        self.assertExpectedInline(
            str(outcome),
            """\
error: This base is too old for patch log_softmax: no c10/metal/utils.h: the tree predates the c10/metal headers, which the kernels are written against.
  next: Check out PyTorch 2.9 or newer, or go on regardless with --allow-old-base.
exit code 1
""",
        )
        status = self.mpskit("status", self.root)
        self.assertIn("PyTorch 2.6.0a0, has no c10/metal", status.output)
        self.assertEqual(status.exit_code, 1)

        original = (self.root / ACTIVATION).read_text()
        outcome = self.mpskit("apply", self.root, "--allow-old-base")
        self.assertEqual(outcome.exit_code, 0, outcome.output)
        patched = (self.root / ACTIVATION).read_text()
        self.assertEqual(patched, original.replace(definition_in(original), ""))
        (patch,) = load_patch_set().patches
        self.assertEqual(self.changed(), sorted([ACTIVATION, *(file.path for file in patch.files)]))

        self.assertEqual(self.mpskit("revert", self.root).exit_code, 0)
        self.assertEqual(Snapshot.take(self.root).without_stat_cache(), before.without_stat_cache())

    def changed(self) -> list[str]:
        return sorted(self.git("diff", "--name-only", "HEAD~1", "HEAD").splitlines())


def definition_in(text: str) -> str:
    """The definition as clang-format lays it out: up to the first brace at a line's start."""
    start = text.index(HEAD)
    end = text.index("\n}\n", start) + len("\n}\n")
    definition = text[start:end]
    assert text.count(definition) == 1
    assert definition.count("{") == definition.count("}")
    assert text[end] == "\n"
    return definition + "\n"

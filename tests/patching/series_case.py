"""A checkout with a series of three patches: the first as in ``checkouts``, one that edits what it
adds, and one with a test."""

from __future__ import annotations

import textwrap

from checkouts import OPERATIONS, SERIES, CheckoutTestCase, Snapshot, write_files

KERNEL = "aten/src/ATen/native/mps/kernels/Square.metal"
HOST = f"{OPERATIONS}/Square.mm"
TEST = "test/test_square.py"
BRANCH = "mpskit/square"

SECOND = """\

    [[patch]]
    name = "cube"
    title = "[MPS] Build on square"
    trailers = { Reviewed-by = "A. Reader <reader@example.com>" }

    [[patch.edit]]
    kind = "insert_after"
    path = "aten/src/ATen/native/mps/operations/Square.mm"
    anchor = "const Tensor& out) {\\n"
    text = "  // cube\\n"
    """
THIRD = """\

    [[patch]]
    name = "test"
    title = "[MPS] Test square"
    files = ["test/test_square.py"]
    """


class SeriesTestCase(CheckoutTestCase):
    series = (SERIES, SECOND, THIRD)

    def setUp(self) -> None:
        super().setUp()
        text = "".join(map(textwrap.dedent, self.series))
        write_files(self.patch_set, {"series.toml": text, TEST: "one = 1\n"})

    def subjects(self, revisions: str = "main..HEAD") -> list[str]:
        return self.git("log", "--format=%s", "--reverse", revisions).splitlines()

    def ids(self) -> list[str]:
        return self.git("rev-list", "--reverse", "main..HEAD").splitlines()

    def update(self, *options: str) -> str:
        return str(self.apply("--update", *options))

    def refuse(self, *options: str) -> str:
        before = Snapshot.take(self.root)
        outcome = self.apply(*options)
        self.assert_refused(outcome, before)
        return str(outcome)

    def in_series(self, old: str, new: str) -> None:
        text = (self.patch_set / "series.toml").read_text()
        self.assertIn(old, text)
        (self.patch_set / "series.toml").write_text(text.replace(old, new))

# ruff: noqa: E501 (expected output stands as it is printed)
from __future__ import annotations

import tempfile
from pathlib import Path

import expecttest
from checkouts import ACTIVATION, OPERATIONS, PATCH_SET, SERIES, write_files

from mpskit.errors import MpskitError
from mpskit.patching import KernelUse, load_patch_set
from mpskit.patching.edits import RemoveDefinition, RemoveInclude, RemoveLine

HOST = f"{OPERATIONS}/Square.mm"
LAYOUTS = """
    [[patch.kernel]]
    name = "square_row"
    when = "rows are short"

    [[patch.layout]]
    name = "graph"
    about = "on the graph"
    path = "a.mm"
    defines = "IMPL(square)"

    [[patch.layout.edit]]
    kind = "remove_line"
    path = "a.metal"
    line = "REGISTER(square)"
    replaced_by = "aten/src/ATen/native/mps/kernels/Square.metal"

    [[patch.layout]]
    name = "kernels"
    about = "on kernels"
    path = "b.mm"
    defines = "IMPL(square)"
    replaces = ["aten/src/ATen/native/mps/operations/Square.mm"]
    """


class LoadPatchSetTest(expecttest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        write_files(self.directory, PATCH_SET)

    def error(self, old: str, new: str) -> str:
        """What is said when ``old`` in series.toml is ``new`` instead."""
        self.assertIn(old, SERIES)
        write_files(self.directory, {"series.toml": SERIES.replace(old, new)})
        return self.failure(self.directory)

    def failure(self, directory: Path) -> str:
        with self.assertRaises(MpskitError) as caught:
            load_patch_set(directory)
        return str(caught.exception).replace(str(self.directory), "DIR")

    def test_everything_is_read(self) -> None:
        (patch,) = load_patch_set(self.directory).patches
        self.assertEqual(patch.message, "[MPS] Move square to Metal\n\nIt is faster there.\n")
        self.assertEqual([file.path for file in patch.files], list(PATCH_SET)[1:])
        self.assertEqual(patch.requires[0].since, "2.7")
        self.assertEqual(patch.expects[0].dispatch, {"MPS": "square_mps_out"})
        self.assertIsInstance(patch.edits[0], RemoveDefinition)

    def test_the_digest_covers_texts_and_files(self) -> None:
        before = load_patch_set(self.directory).digest
        self.assertEqual(load_patch_set(self.directory).digest, before)
        write_files(self.directory, {"series.toml": SERIES.replace("faster", "quicker")})
        other_text = load_patch_set(self.directory).digest
        write_files(self.directory, {"aten/src/ATen/native/mps/kernels/Square.metal": "other"})
        other_file = load_patch_set(self.directory).digest
        self.assertEqual(len({before, other_text, other_file}), 3)

    def test_patterns_are_compiled_early(self) -> None:
        edit = 'kind = "remove_include"\npath = "a.mm"\nheader = "a.h"\nuses = ["a("]'
        start = SERIES.index("    kind = ")
        write_files(
            self.directory, {"series.toml": SERIES[:start] + "    " + edit.replace("\n", "\n    ")}
        )
        self.assertExpectedInline(
            self.failure(self.directory),
            """\
DIR/series.toml: `patch[0].edit[0].uses` 'a(' is no regular expression: missing ), unterminated subpattern at position 1.
Mend the file.""",
        )
        good = SERIES[:start] + "    " + edit.replace("a(", "a").replace("\n", "\n    ")
        write_files(self.directory, {"series.toml": good})
        self.assertIsInstance(load_patch_set(self.directory).patches[0].edits[0], RemoveInclude)

    def test_what_is_wrong_is_named_with_file_and_key(self) -> None:
        changes = [
            ("format = 1", "format = 2"),
            ("format = 1", ""),
            ("format = 1", "format = true"),
            ('name = "square"', 'name = "a b"'),
            ('title = "[MPS] Move square to Metal"', 'title = "two\\nlines"'),
            ('why = "It is faster there."', "why = 3"),
            ('why = "It is faster there."', 'wyh = "misspelt"'),
            ('"aten/src/ATen/native/mps/kernels/Square.metal"', '"/etc/passwd"'),
            ('"aten/src/ATen/native/mps/kernels/Square.metal"', '"../outside"'),
            ('"aten/src/ATen/native/mps/kernels/Square.metal"', '".git/config"'),
            ('"aten/src/ATen/native/mps/kernels/Square.metal"', '"missing.metal"'),
            ('kind = "remove_definition"', 'kind = "rename"'),
            ('head = "TORCH_IMPL_FUNC(square_mps_out)"', ""),
            ('head = "TORCH_IMPL_FUNC(square_mps_out)"', 'head = ""'),
            ('absent = "the kernels include it"', ""),
            ('dispatch = { MPS = "square_mps_out" }', "dispatch = { MPS = 1 }"),
            ("[[patch.expects]]", "[patch.expects]"),
            ('since = "2.7"', 'since = "v2.7"'),
            ("[[patch]]", "[patch]"),
            ('why = "It is faster there."', 'replaces = ["other"]'),
            ("format = 1", "format 1"),
        ]
        said = "\n".join(self.error(old, new).partition("\n")[0] for old, new in changes)
        self.assertExpectedInline(
            said,
            """\
DIR/series.toml: `format` must be 1, the format this mpskit reads.
DIR/series.toml: `format` is missing.
DIR/series.toml: `format` must be a number.
DIR/series.toml: `name` must be letters, digits, '_' and '-': it names a branch.
DIR/series.toml: `patch[0].title` must be one line: it is the commit's subject.
DIR/series.toml: `patch[0].why` must be text.
DIR/series.toml: `patch[0].wyh` is no key that mpskit knows.
DIR/series.toml: `patch[0].files` '/etc/passwd' must be a plain path relative to the PyTorch tree's root.
DIR/series.toml: `patch[0].files` '../outside' must be a plain path relative to the PyTorch tree's root.
DIR/series.toml: `patch[0].files` '.git/config' lies in git's own directory.
DIR/series.toml: `patch[0].files` missing.metal cannot be read: No such file or directory.
DIR/series.toml: `patch[0].edit[0].kind` 'rename' is none of remove_definition, remove_include, remove_line, replace_in, insert_after, insert_before.
DIR/series.toml: `patch[0].edit[0].head` is missing.
DIR/series.toml: `patch[0].edit[0].head` must not be empty.
DIR/series.toml: `patch[0].requires[0].absent` is missing.
DIR/series.toml: `patch[0].expects[0].dispatch` must give a kernel's name by dispatch key.
DIR/series.toml: `patch[0].expects` must be a list.
DIR/series.toml: `patch[0].requires[0].since` must be a PyTorch version such as 2.7.
DIR/series.toml: `patch` must be a list.
DIR/series.toml: `patch[0].replaces` other is not among `files`.
DIR/series.toml cannot be read: Expected '=' after a key in a key/value pair (at line 1, column 8)""",
        )

    def test_layouts_kernels_and_trailers_are_read(self) -> None:
        write_files(self.directory, {"series.toml": SERIES + LAYOUTS})
        (patch,) = load_patch_set(self.directory).patches
        self.assertEqual([layout.name for layout in patch.layouts], ["graph", "kernels"])
        self.assertEqual(patch.layouts[1].replaces, (HOST,))
        self.assertIsInstance(patch.layouts[0].edits[0], RemoveLine)
        # The first layout is the one that the patch is written for.
        self.assertEqual([edit.path for edit in patch.edits], [ACTIVATION, "a.metal"])
        self.assertIn("a.metal", patch.paths)
        self.assertEqual(patch.kernels, (KernelUse("square_row", "rows are short"),))

    def test_what_is_wrong_with_a_layout_is_named(self) -> None:
        changes = [
            ('name = "kernels"', 'name = "graph"'),
            ('about = "on the graph"', ""),
            ('path = "a.mm"', 'path = "../a.mm"'),
            (f'replaces = ["{HOST}"]', 'replaces = ["other.mm"]'),
            ('line = "REGISTER(square)"', ""),
            ('when = "rows are short"', 'when = ""'),
            ('when = "rows are short"', 'when = "rows are short"\nthen = ""'),
        ]
        said = ""
        for old, new in changes:
            self.assertIn(old, LAYOUTS)
            write_files(self.directory, {"series.toml": SERIES + LAYOUTS.replace(old, new)})
            said += self.failure(self.directory).partition("\n")[0] + "\n"
        text = SERIES.replace("files = [", 'trailers = { "Signed off" = "me" }\n    files = [')
        write_files(self.directory, {"series.toml": text})
        said += self.failure(self.directory).partition("\n")[0] + "\n"
        self.assertExpectedInline(
            said,
            """\
DIR/series.toml: `patch[0].layout[1].name` 'graph' is taken already.
DIR/series.toml: `patch[0].layout[0].about` is missing.
DIR/series.toml: `patch[0].layout[0].path` '../a.mm' must be a plain path relative to the PyTorch tree's root.
DIR/series.toml: `patch[0].layout` replaces other.mm, not one of `files`.
DIR/series.toml: `patch[0].layout[0].edit[0].line` is missing.
DIR/series.toml: `patch[0].kernel[0].when` must not be empty.
DIR/series.toml: `patch[0].kernel[0].then` is no key that mpskit knows.
DIR/series.toml: `patch[0].trailers` 'Signed off' is no trailer with a text.
""",
        )

    def test_no_patch_set_there(self) -> None:
        self.assertExpectedInline(
            self.failure(self.directory / "nowhere"),
            """\
DIR/nowhere is no patch set: it has no series.toml.
Name the directory that holds series.toml with --patch-set DIR.""",
        )

    def test_two_patches_of_one_name(self) -> None:
        patch = SERIES[SERIES.index("    [[patch]]") :]
        write_files(self.directory, {"series.toml": SERIES + patch})
        self.assertExpectedInline(
            self.failure(self.directory),
            """\
DIR/series.toml: `patch[1].name` 'square' is taken already.
Mend the file.""",
        )


class OwnPatchSetTest(expecttest.TestCase):
    def test_it_loads(self) -> None:
        patch_set = load_patch_set()
        self.assertExpectedInline(
            "\n".join(path for path in patch_set.paths),
            """\
aten/src/ATen/native/mps/kernels/LogSoftmax.h
aten/src/ATen/native/mps/kernels/LogSoftmax.metal
aten/src/ATen/native/mps/kernels/LogSoftmaxUnits.h
aten/src/ATen/native/mps/operations/LogSoftmax.mm
aten/src/ATen/native/mps/operations/LogSoftmaxLaunch.h
aten/src/ATen/native/mps/operations/LogSoftmaxPlan.h
aten/src/ATen/native/mps/operations/LogSoftmaxPlanCommon.h
test/test_mps.py
torch/testing/_internal/common_methods_invocations.py
torch/testing/_internal/opinfo/definitions/_masked.py
aten/src/ATen/native/mps/operations/Activation.mm
aten/src/ATen/native/mps/operations/SoftMax.mm
aten/src/ATen/native/mps/kernels/SoftMax.metal
aten/src/ATen/native/mps/kernels/LogSoftmaxBackward.h
aten/src/ATen/native/mps/kernels/LogSoftmaxBackward.metal
aten/src/ATen/native/mps/operations/LogSoftmaxBackward.mm
aten/src/ATen/native/mps/operations/LogSoftmaxBackwardPlan.h
test/test_mps_log_softmax_backward.py""",
        )
        for patch in patch_set.patches:
            self.assertTrue(patch.title.startswith("[MPS] "))
            self.assertLessEqual(max(map(len, patch.message.splitlines())), 80)

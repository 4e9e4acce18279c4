"""clang-format on what a patch adds and edits; lintrunner where it is installed."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

from checkouts import ACTIVATION
from proposals import BASE, HOST, KERNELS, METAL, PLAN, REMOVED_INCLUDE, SERIES, ProposalTestCase

from mpskit.pullrequest.checks import style

# A style that none of our files has.
_WIDE_INDENT = "BasedOnStyle: LLVM\nIndentWidth: 7\n"


# Files as PyTorch's style has them, one a language.
FORMATTED = {
    f"{KERNELS}/LogSoftmax.h": "#pragma once\n",
    METAL: "kernel void scale(device float* x, uint i [[thread_position_in_grid]]) {}\n",
    HOST: "TORCH_IMPL_FUNC(log_softmax_mps_out)\n(const Tensor& self) {}\n",
    PLAN: "inline int twice(int value) {\n  return 2 * value;\n}\n",
}


class ClangFormatTest(ProposalTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.files.update(FORMATTED)

    def test_passes(self) -> None:
        self.assert_passes(
            style.clang_format(self.only_commit()), "4 files", "PyTorch's style as mpskit has it"
        )

    def test_each_language(self) -> None:
        for path in (METAL, HOST, PLAN):
            with self.subTest(path):
                badly = self.files[path] + "int  badly( ){return 1 ;}\n"
                problems = style._unformatted(
                    str(style._find("clang-format")),
                    style._FALLBACK_STYLE,
                    path,
                    badly,
                    [f"1:{badly.count(chr(10))}"],
                )
                self.assertIn(f"{path}: line {badly.count(chr(10))}", next(problems))

    def test_an_added_file(self) -> None:
        item = self.only_commit(**{HOST: self.files[HOST] + "int  badly( ){return 1 ;}\n"})
        self.assert_fails(style.clang_format(item), HOST, "is formatted otherwise")

    def test_the_checkouts_own_style_counts(self) -> None:
        self.commit({".clang-format": _WIDE_INDENT})
        self.assert_fails(style.clang_format(self.only_commit()), METAL)

    def test_only_the_edited_lines_of_upstreams_files_count(self) -> None:
        self.commit({ACTIVATION: "int  upstreams( ){return 1 ;}\n" + BASE[ACTIVATION]})
        self.assert_passes(style.clang_format(self.only_commit()))

    def test_an_edited_line(self) -> None:
        added = f"""
    [[patch.edit]]
    kind = "insert_after"
    path = "{ACTIVATION}"
    anchor = "}} // namespace at::native"
    text = " // and\\nint  badly( ){{return 1 ;}}"
    """
        item = self.only_commit(**{"series.toml": SERIES + REMOVED_INCLUDE + added})
        self.assert_fails(style.clang_format(item), ACTIVATION)

    def test_not_installed(self) -> None:
        with mock.patch.object(style, "_find", return_value=None):
            check = style.clang_format(self.only_commit())
        self.assertEqual(check.outcome.value, "not run")
        self.assertIn("pip install clang-format", check.why)

    def test_a_program_that_fails(self) -> None:
        self.assert_fails(style.clang_format(self.only_commit(), "false"), "ended with 1")


class LintrunnerTest(ProposalTestCase):
    def run_with(self, script: str | None, configured: bool = True):
        if configured:
            self.commit({".lintrunner.toml": ""})
        series = self.make_applied()
        if script is None:
            with mock.patch.object(style, "_find", return_value=None):
                return style.lintrunner(series)
        program = self.directory / "lintrunner"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        path = f"{self.directory}{os.pathsep}{os.environ['PATH']}"
        with mock.patch.dict(os.environ, {"PATH": path}):
            return style.lintrunner(series)

    def test_clean(self) -> None:
        self.assert_passes(self.run_with('test -f "$2"'), "6 files")

    def test_findings(self) -> None:
        self.assert_fails(self.run_with(f"echo {Path(HOST).name}:1 NEWLINE; exit 1"), "NEWLINE")

    def test_not_installed(self) -> None:
        self.assertEqual(self.run_with(None).outcome.value, "not run")

    def test_not_configured(self) -> None:
        check = self.run_with("exit 0", configured=False)
        self.assertEqual(check.outcome.value, "not run")
        self.assertIn(".lintrunner.toml", check.why)

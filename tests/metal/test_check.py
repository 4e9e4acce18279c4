"""Diagnostics as a user sees them: `mpskit check`, and the errors of compile_shader."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from expecttest import TestCase

from mpskit.cli import cli
from mpskit.errors import MpskitError
from mpskit.metal import CompileError, compile_shader
from mpskit.metal.codegen.diagnostics import in_users_words, read_messages
from mpskit.metal.errors import Diagnostic, Location
from mpskit.metal.frontend.sources import SourceLines


def errors_of(source: str) -> list[Diagnostic]:
    """What compile_shader refuses a source with that stands behind the standard include."""
    with pytest.raises(CompileError) as caught:
        compile_shader(f"#include <metal_stdlib>{source}")
    return list(caught.value.diagnostics)


def places(source: str, diagnostics: list[Diagnostic]) -> list[str]:
    """The rest of the line at each diagnostic."""
    lines = f"#include <metal_stdlib>{source}".splitlines()
    return [lines[d.location.line - 1][d.location.column - 1 :] for d in diagnostics]


class CompilerMessagesTest(TestCase):
    """No exact wording, which differs from compiler to compiler, but places and names."""

    def check(self, source: str, *expected: tuple[str, str]) -> None:
        """Compares the place, the message of each diagnostic with what they begin with, contain."""
        source = "\nusing namespace metal;\n" + textwrap.dedent(source)
        diagnostics = errors_of(source)
        found = places(source, diagnostics)
        self.assertEqual(len(diagnostics), len(expected), list(map(str, diagnostics)))
        for diagnostic, place, (begin, words) in zip(diagnostics, found, expected, strict=True):
            self.assertTrue(place.startswith(begin), f"{diagnostic} is at {place!r}")
            self.assertIn(words, diagnostic.message)
            self.assertNotIn("mpskit", diagnostic.message)

    def test_columns_are_the_users(self):
        self.check(
            """\
            kernel void f(device float* x, constant uint& n, uint i [[thread_position_in_grid]]) {
              x[i] = i < n ? simd_sum(x[i]) * 1.0 : 2.0h; /* \u00e9 */ x[i] = gone;
            \tthreadgroup float s[4]; x[0] = s[lost];
            }
            """,
            ("gone;", "'gone'"),
            ("lost];", "'lost'"),
        )

    def test_what_a_macro_makes_stands_at_its_name(self):
        self.check(
            """\
            #define ADD(a, b) ((a) + (b) + gone)
            kernel void f(device float* x) { /* c */ x[0] = 1.0 + ADD(x[1], 2.0) + lost; }
            """,
            ("ADD(x[1]", "'gone'"),
            ("lost;", "'lost'"),
        )

    def test_types_have_metals_names(self):
        self.check(
            """\
            kernel void f(device float4* x, device uint2* y, constant uchar4& z) {
              float3 v = x[0];
              y[0] = x[0];
              v.foo = 1;
            }
            """,
            ("", "'float4'"),
            ("", ""),
            ("foo = 1", "'float3'"),
        )

    def test_an_error_in_the_shim_stands_at_the_users_line(self):
        source = """\

            template <typename T> float narrow(T x) {
              return as_type<float>(x);
            }
            kernel void f(device float* x, device half* h) {
              x[0] = narrow(h[0]);
            }
        """
        diagnostics = errors_of("\nusing namespace metal;\n" + textwrap.dedent(source))
        self.assertIn("as_type", diagnostics[0].message)
        self.assertEqual([(d.severity, d.location.line) for d in diagnostics],
                         [("error", 5), ("note", 8)])  # fmt: skip

    def test_an_error_in_an_entry_point_stands_at_the_kernel(self):
        self.check(
            """\
            kernel void f(device float* x) {}
            template <typename T> kernel void g(device float* x, T i [[thread_position_in_grid]]) {}
            template [[host_name("g_float4")]] kernel void g<float4>(device float*, float4);
            """,
            ("template [[host", "is an integer, or a vector of two or three; it is no float4"),
        )  # fmt: skip

    def test_threadgroup_memory_is_added_up(self):
        self.check(
            """\
            template <typename T> kernel void f(device T* x) {
              threadgroup T a[2048];
              threadgroup float b[4][1024], c;
              x[0] = a[0] + b[0][0] + c;
            }
            template [[host_name("f_half")]] kernel void f<half>(device half*);
            template [[host_name("f_float4")]] kernel void f<float4>(device float4*);
            """,
            (";", "threadgroup memory: 49156 bytes with a, b, c; a threadgroup has 32768"),
        )

    def test_the_preprocessors_errors(self):
        self.check('#include "gone.h"\n', ('"gone.h"', "no include folder has 'gone.h'"))

    def test_both_compilers_messages_are_read(self):
        gcc = """\
In file included from x.cpp:3:
shim/vec.h: In instantiation of 'T f(T) [with T = int]':
user.metal:4:9:   required from 'void g()'
user.metal:9:3:   required from here
shim/vec.h:7:8: error: no match
shim/vec.h:1:1: note: candidate: 'x'
user.metal:2:2: warning: unused
user.metal:5:5: error: other [-fpermissive]
"""
        clang = """\
shim/vec.h:7:8: error: no match
user.metal:4:9: note: in instantiation of function template specialization 'f<int>' requested here
shim/vec.h:1:1: note: candidate function not viable
user.metal:5:5: error: other
"""
        for output, places in ((gcc, 2), (clang, 1)):
            first, second = read_messages(output)
            self.assertEqual(first.context[0], Location("user.metal", 4, 9))
            self.assertEqual(len(first.context), places)
            self.assertEqual(len(first.notes), 1)
            self.assertEqual(in_users_words(second.diagnostic.message), "other")
            self.assertEqual(second.context, [])

    def test_spellings(self):
        cases = {
            "cannot convert 'mpskit::types::vec<short unsigned int, 3>' to 'const int'":
                "cannot convert 'ushort3' to 'const int'",
            "no match for 'mpskit::types::small_float<mpskit::types::brain16>&'":
                "no match for 'bfloat&'",
            "'using float4 = struct mpskit::types::vec<float, 4>' "
            "{aka 'struct mpskit::types::vec<float, 4>'} has no member named 'q'":
                "'float4' has no member named 'q'",
            "from 'mpskit::entry::Position' to 'mpskit::types::vec<float, 4>'":
                "a thread's position is an integer, or a vector of two or three; it is no float4",
            "cannot convert [-fpermissive]": "cannot convert",
        }  # fmt: skip
        for message, expected in cases.items():
            self.assertEqual(in_users_words(message), expected)


class SourceLinesTest(TestCase):
    def test_places(self):
        lines = SourceLines('#line 1 "a \\"b\\".h"\nint x;\n#line 7 "main"\nf(A(b), c); // d\n')
        self.assertEqual(lines.line('a "b".h', 1), "int x;")
        self.assertEqual(lines.line("main", 7), "f(A(b), c); // d")
        self.assertIsNone(lines.line("main", 8))
        erased = "  f((mark, ((b) + 1)), c);"
        columns = {"f(": 1, "mark": 3, "b": 5, "1": 3, "c": 9, ";": 11}
        for text, column in columns.items():
            where = Location("main", 7, erased.index(text) + 1)
            self.assertEqual(lines.original(where, erased).column, column, text)


GOOD = "kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 1; }\n"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["check", *map(str, arguments)], standalone_mode=False)


class TestCommand:
    def test_prints_like_a_compiler(self, tmp_path: Path) -> None:
        file = tmp_path / "a.metal"
        file.write_text(
            "kernel void f(device float* x, constant uint& n, uint i [[thread_position_in_grid]]) {"
            "\n\tdouble d = 1.0;\n  x[i] = d * gone;\n  ulong at = i * n;\n}\n"
        )
        result = run(file)
        assert result.return_value == 1
        lines = [line for line in result.output.splitlines() if not line.startswith("    ")]
        places = [line.replace(f"{file}", "F") for line in lines]
        compilers = places.pop(1)
        assert compilers.startswith("F:3:14: error: ")
        assert "'gone'" in compilers
        assert places == [
            "F:2:2: error: 'double' does not exist in Metal [double]",
            "F:4:16: warning: a product of 32-bit values is widened to 64 bits after it overflowed "
            "[index-overflow]",
            "2 errors, 1 warning in 1 file",
        ]
        assert "     2 | \tdouble d = 1.0;\n       | \t^\n" in result.output
        assert "Apple GPUs have no 64-bit floating point" in result.output

    def test_warnings_are_no_failure(self, tmp_path: Path) -> None:
        good, warned = tmp_path / "good.metal", tmp_path / "warned.metal"
        good.write_text(GOOD)
        warned.write_text(GOOD.replace("x[i] = 1", "for (;i < 9; ++i) x[i] = fast::exp(x[i])")
                          .replace("kernel", "using namespace metal;\nkernel"))  # fmt: skip
        result = run(good, warned)
        assert result.return_value == 0
        assert "[fast-math]" in result.output
        assert result.output.endswith("0 errors, 1 warning in 2 files\n")

    def test_json(self, tmp_path: Path) -> None:
        good, bad = tmp_path / "good.metal", tmp_path / "bad.metal"
        good.write_text(GOOD)
        bad.write_text("void f(float* x) {}\n")
        result = run("--json", good, bad)
        assert result.return_value == 1
        first, second = json.loads(result.output)
        assert first == {"file": str(good), "errors": 0, "warnings": 0, "diagnostics": []}
        (diagnostic,) = second["diagnostics"]
        assert "generic address space" in diagnostic.pop("explanation")
        assert diagnostic == {
            "file": str(bad),
            "line": 1,
            "column": 13,
            "severity": "error",
            "rule": "address-space",
            "message": "pointer 'x' has no address space",
        }

    def test_json_has_everything(self, tmp_path: Path) -> None:
        first, second, header = (tmp_path / name for name in ("a.metal", "b.metal", "c.h"))
        header.write_text("inline float g(float x) { return gone; }\n")
        first.write_text(f'#include "c.h"\n{GOOD.replace("= 1", "= lost")}')
        second.write_text(GOOD + GOOD)
        result = run("--json", first, second, first)
        assert result.return_value == 1
        files = json.loads(result.output)
        assert [(f["file"], f["errors"]) for f in files] == [
            (str(first), 2), (str(second), 1), (str(first), 2),
        ]  # fmt: skip
        places = [(d["file"], d["line"], d["column"]) for d in files[0]["diagnostics"]]
        assert places == [(str(first), 2, GOOD.index("1;") + 1), (str(header), 1, 34)]
        for diagnostic in (*files[0]["diagnostics"], *files[1]["diagnostics"]):
            assert list(diagnostic) == [
                "file", "line", "column", "severity", "rule", "message", "explanation"
            ]  # fmt: skip
        assert "two kernels named 'f'" in files[1]["diagnostics"][0]["message"]

    def test_standard_input(self) -> None:
        def checked(text: str | bytes, *arguments: str) -> Result:
            arguments = ("check", "-", *arguments)
            return CliRunner().invoke(cli, arguments, input=text, standalone_mode=False)

        assert checked(GOOD).return_value == 0
        result = checked(GOOD.replace("= 1", "= gone"))
        assert result.return_value == 1
        assert "program_source:1:" in result.output
        assert json.loads(checked("void f(double x) {}", "--json").output)[0]["file"] == "-"
        assert "is no text" in str(checked(b"MTLB\xff\xfe").exception)

    def test_includes_and_versions(self, tmp_path: Path) -> None:
        (tmp_path / "include").mkdir()
        (tmp_path / "include/half.h").write_text(
            "#if __METAL_VERSION__ < 400\nvoid g(double x) {}\n#endif\n"
        )
        file = tmp_path / "a.metal"
        file.write_text("#include <half.h>\n" + GOOD)
        found = run(file, "--include", tmp_path / "include")
        assert f"{tmp_path / 'include/half.h'}:2:8: error" in found.output
        assert run(
            file, "--include", tmp_path / "include", "--metal-version", 400
        ).return_value == 0  # fmt: skip
        assert "no include folder has 'half.h'" in run(file).output

    def test_function_constants_need_no_values(self, tmp_path: Path) -> None:
        file = tmp_path / "a.metal"
        file.write_text("constant int n [[function_constant(0)]];\n" + GOOD.replace("1", "n"))
        assert run(file).return_value == 0

    def test_suppression_of_a_compilers_rule(self, tmp_path: Path) -> None:
        file = tmp_path / "a.metal"
        text = "kernel void f(device float* x) {\n  threadgroup float s[9000];\n  x[0] = s[1];\n}\n"
        file.write_text(text)
        assert "[threadgroup-memory]" in run(file).output
        file.write_text(text.replace("];\n", "]; // mpskit: allow(threadgroup-memory)\n", 1))
        assert run(file).return_value == 0

    @pytest.mark.parametrize("text", ["kernel void f( {}", "#include <gone.h>", "#if\n"])
    def test_what_cannot_be_parsed(self, tmp_path: Path, text: str) -> None:
        file = tmp_path / "a.metal"
        file.write_text(text)
        result = run(file)
        assert result.return_value == 1
        assert f"{file}:1:" in result.output

    def test_files_that_are_none(self, tmp_path: Path) -> None:
        (tmp_path / "softmax.metal").write_text(GOOD)
        (tmp_path / "library.metallib").write_bytes(b"MTLB\xff\xfe\x00")
        for path, message in (
            (tmp_path / "softmx.metal", "has softmax.metal"),
            (tmp_path, "is a directory"),
            (tmp_path / "library.metallib", "no compiled|not a compiled"),
        ):
            with pytest.raises(MpskitError, match=message):
                error = run(path).exception
                assert error is not None
                raise error


def test_compile_shader_refuses_and_warns() -> None:
    with pytest.raises(CompileError) as caught:
        compile_shader("void f(double x) {}\n" + GOOD)
    assert [d.rule for d in caught.value.diagnostics] == ["double"]
    assert "Use float" in (caught.value.hint or "")
    warned = GOOD.replace("x[i] = 1", "ulong at = i * i; x[at] = 1")
    for _ in range(2):  # the second time from the cache
        (warning,) = compile_shader(warned).diagnostics
        assert (warning.rule, warning.severity) == ("index-overflow", "warning")
    allowed = warned.replace("\n", " // mpskit: allow(index-overflow)\n")
    assert list(compile_shader(allowed).diagnostics) == []

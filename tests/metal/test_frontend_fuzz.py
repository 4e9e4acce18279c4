"""Any text gives a result or an error, in time that grows with its length."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpskit.metal import CompileError
from mpskit.metal.checking import lint_embedded
from mpskit.metal.cpu.emit import translation_unit
from mpskit.metal.frontend.includes import embed_includes
from mpskit.metal.frontend.kernels import read_kernels
from mpskit.metal.frontend.loading import load, system_dirs
from mpskit.metal.frontend.preprocess import preprocess
from mpskit.metal.frontend.sources import SourceLines
from mpskit.metal.frontend.structure import Program
from mpskit.metal.frontend.tokens import Source
from mpskit.metal.host_compiler import find_compiler
from mpskit.metal.lint import lint

PATCH = Path(__file__).parents[2] / "aten_patch"
# On a machine whose processors others use, too; what is not linear takes minutes.
SECONDS = 20
COUNTS: Counter[str] = Counter()

fuzzing = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", autouse=True)
def print_counts(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    counts = ", ".join(f"{count} {what}" for what, count in sorted(COUNTS.items()))
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\nfuzzed: {counts}")


def process(text: str, kind: str) -> None:
    """Takes a text through all of the front end; counts how it ends."""
    begin = time.monotonic()
    outcome = "accepted"
    try:
        program = Program(Source(text))
        diagnostics = lint(program, SourceLines(f'#line 1 "program_source"\n{text}'))
        outcome = "linted" if diagnostics else outcome
        unit = translation_unit(program, read_kernels(program))
        assert unit.count("\n") >= text.count("\n")
    except CompileError as error:
        assert error.diagnostics
        assert all(d.location.line >= 1 and d.location.column >= 1 for d in error.diagnostics)
        outcome = "refused"
    assert time.monotonic() - begin < SECONDS
    COUNTS[f"{kind} {outcome}"] += 1


WORDS = st.sampled_from(
    """
    kernel void f x ( ) { } [[ ]] [[buffer(0)]] [[host_name("a")]] [[kernel]]
    [[function_constant(1)]] [[thread_index_in_simdgroup]] [[max_total_threads_per_threadgroup(N)]]
    device constant threadgroup thread float half uint ulong T vec N < > >> :: , ; = * & && ? :
    template typename struct
    namespace operator 1.0 .5e3 0x1p2 1.0h "s" 'c' R"(raw)" " ' // # \\ ~ . -> const static using
    typedef enum decltype alignas if else for while do switch return goto double new delete auto
    union coherent(system) volatile 0 ... default host_name .xy lane vec3 float4 return break
    simd_sum threadgroup_barrier fast is_function_constant_defined texture2d #pragma += [ ]
    """.split()
    + ["\n", "\x00", "é", "\u2028", "\ufeff", "\U0001f600", "\r\n"]
)


@fuzzing
@given(st.lists(WORDS, max_size=80).map(" ".join))
def test_token_soup(text: str) -> None:
    process(text, "soups")


@fuzzing
@given(st.lists(WORDS, max_size=40).map(" ".join))
def test_token_soup_in_a_kernel(text: str) -> None:
    head = "template <typename T> kernel void f(device T* x, uint i [[thread_index_in_simdgroup]])"
    process(f"{head} {{ {text} }}", "bodies")


@fuzzing
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    process(text, "texts")


def preprocessed(path: Path) -> str:
    embedded = load(path, [PATCH / "aten/src"])
    return preprocess(embedded, find_compiler(), metal_version=320).text


@pytest.fixture(scope="module")
def real_texts() -> list[str]:
    """Sources as written, and a kernel file as it is preprocessed."""
    headers = [path.read_text() for path in sorted(system_dirs()[0].glob("c10/metal/*.h"))]
    kernels = sorted(PATCH.glob("**/*.metal"))
    return [*headers, *(path.read_text() for path in kernels), preprocessed(kernels[0])]


@settings(fuzzing, max_examples=60)
@given(data=st.data())
def test_truncated_files(real_texts: list[str], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(real_texts))
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 20_000)))
    process(text[begin:end], "pieces of files")


@settings(fuzzing, max_examples=60)
@given(data=st.data())
def test_files_with_a_changed_token(real_texts: list[str], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(real_texts[-3:]))
    tokens = Source(text).tokens
    token = tokens[data.draw(st.integers(0, len(tokens) - 1))]
    process(text[: token.start] + data.draw(WORDS) + text[token.end :], "changed files")


@settings(fuzzing, max_examples=25)
@given(st.lists(WORDS, max_size=30).map(" ".join))
def test_through_the_preprocessor(text: str) -> None:
    begin = time.monotonic()
    try:
        lint_embedded(embed_includes(text, "program_source", []), metal_version=320)
    except CompileError as error:
        assert error.diagnostics
        COUNTS["preprocessed soups refused"] += 1
    else:
        COUNTS["preprocessed soups accepted"] += 1
    assert time.monotonic() - begin < SECONDS


IN_KERNEL = "kernel void k(device float* x, uint i [[thread_index_in_simdgroup]]) { %s }"


@pytest.mark.parametrize("opening, closing", ["()", "[]", "{}", ("f(", ")"), ("a<", ">"),
                                              ("namespace a {", "}"), ("struct a {", "};"),
                                              ("if (x) {", "}"), ("x ? ", " : y")])  # fmt: skip
@pytest.mark.parametrize("depth", [100, 10_000])
def test_deep_nesting(opening: str, closing: str, depth: int) -> None:
    process(opening * depth + closing * depth, "nests")
    process(IN_KERNEL % (opening * depth + closing * depth), "nests")
    process(opening * depth, "nests")


# Each was, or would easily be, quadratic.
REPEATED = [
    "constant ", "struct ", "threadgroup ", "threadgroup float x[4]; ", "a::", '"', '\\"', 'R"(',
    "a < ", "a_t<b && ", "x ? y : ", "if (x) ", "else ", "int x, ", "f(x); ", "[[a]] ",
    "template <", "operator ", "fast::exp(x) + ", "simd_sum(x) ", "/* ", "'", "#", "using x = ",
    "x && ", "i && ", "i ? ", "x = ", "f(x.xy, ", "x.xy, ", "float4 v = {x, ", "if (i) return; ",
    "struct a { union { struct { half b; }; }; }; ", "device float* p = ", "i || simd_sum(x) && ",
    "float a[n]; ", "x = i; if (x) simd_sum(x); ", "ulong x = a * b; ", "\n", " ", "\x00", "é",
]  # fmt: skip


@pytest.mark.parametrize("text", REPEATED)
def test_long_lines(text: str) -> None:
    line = text * (50_000 // len(text))
    process(line, "long lines")
    process(IN_KERNEL % line, "long lines")


def test_lines_of_a_megabyte() -> None:
    process("float x = 1; // " + "a" * 2**20, "long lines")
    process(IN_KERNEL % f"x[i] = {' + '.join(['1.0'] * 2**17)};", "long lines")
    process(f'"{"a" * 2**20}', "long lines")


def test_a_chain_of_constants_is_evaluated_once() -> None:
    chain = "".join(f"constant int a{i} = a{i - 1} + a{i - 1};\n" for i in range(1, 200))
    attribute = "[[max_total_threads_per_threadgroup(a199)]]"
    process(f"constant int a0 = 0;\n{chain}{attribute} kernel void f() {{}}", "chains")


def test_a_chain_of_calls_is_followed_once() -> None:
    chain = "".join(f"void f{i}() {{ f{i + 1}(); }}\n" for i in range(5000))
    process(f"{chain}void f5000() {{ simd_sum(1); }}", "chains")
    process(f"{chain}void f5000() {{ f0(); }}", "chains")

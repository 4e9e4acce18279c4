"""The front end's exact output on small programs, and its behaviour on arbitrary ones."""

from __future__ import annotations

import re
import tempfile
import textwrap
from pathlib import Path

import pytest
from expecttest import TestCase
from hypothesis import given
from hypothesis import strategies as st

from mpskit.metal.cpu.emit import swizzle_macros, translation_unit
from mpskit.metal.errors import CompileError
from mpskit.metal.frontend.constants import evaluate
from mpskit.metal.frontend.erase import Eraser
from mpskit.metal.frontend.includes import embed_includes
from mpskit.metal.frontend.kernels import Kernel, read_kernels
from mpskit.metal.frontend.preprocess import read_diagnostics
from mpskit.metal.frontend.structure import Program
from mpskit.metal.frontend.tokens import Source


def program(text: str) -> Program:
    return Program(Source(textwrap.dedent(text)))


def erase(text: str) -> str:
    def declare(kind, variables):
        return f"{kind} {', '.join(f'{v.name}{v.extents} = place({v.site})' for v in variables)}"

    lines = Eraser(program(text), declare).erase().splitlines()
    return "\n".join(" ".join(line.split()) for line in lines if line.strip())


def kernels(text: str) -> list[Kernel]:
    return read_kernels(program(text))


def describe(kernel: Kernel) -> str:
    lines = [f"{kernel.host_name}: {kernel.expression}, at most {kernel.max_threads} threads"]
    for p in kernel.parameters:
        bound = p.builtin or f"{p.kind}({p.index})"
        lines.append(f"  {p.name}: {bound}{' &' if p.reference else ''}")
    return "\n".join(lines)


class ErasingTest(TestCase):
    def test_address_spaces(self):
        self.assertExpectedInline(
            erase("""
                constant float table[2] = {1.0, 2e-3};
                constant constexpr uint n = 4;
                static constant const int m = 3;
                void f(device float* a, constant float* b, const constant uint& c,
                       constant const char* d, thread float (&e)[4], threadgroup int* g,
                       constant T const& h, device const float* const* i) {
                  thread float x = a[0];
                  device auto* p = &a[1];
                }
            """),
            """\
const float table[2] = {1.0f, 2e-3f};
const constexpr uint n = 4;
static const int m = 3;
void f( float* a, const float* b, const uint& c,
const char* d, float (&e)[4], int* g,
T const& h, const float* const* i) {
float x = a[0];
auto* p = &a[1];
}""",
        )

    def test_literals(self):
        self.assertExpectedInline(
            erase("float x = 1.0 + .5 + 1e3 + 1.5f + 2.0h + 3.0bf + 0x1p-3 + 7 + 0xFFu + 1'0.0;"),
            """\
float x = 1.0f + .5f + 1e3f + 1.5f + half(2.0f) + bfloat(3.0f) + 0x1p-3f + 7 + 0xFFu + 1'0.0f;""",
        )

    def test_attributes_are_stripped_and_lines_stay(self):
        text = "[[kernel]] void f(\n  uint i [[thread_position_in_grid]],\n  device int* x [[\n"
        text += "  buffer(0)]]) {\n  x[i] = 0;\n}\n"
        self.assertEqual(erase(text).splitlines()[-2:], ["x[i] = 0;", "}"])
        erased = Eraser(program(text), lambda *_: "").erase()
        self.assertEqual(erased.count("\n"), text.count("\n"))

    def test_threadgroup_variables(self):
        text = erase("""
            kernel void f(threadgroup float* given) {
              threadgroup float a[32], b;
              threadgroup metal::array<float, N> c[2][N < 4 ? 1 : 2];
              threadgroup atomic_uint count;
              threadgroup float* p = a;
              threadgroup auto& r = b;
              threadgroup float (&s)[32] = a;
              for (threadgroup float* q = given; q < p; ++q) {}
            }
        """)
        self.assertExpectedInline(
            re.sub(r"; static_assert.*\)", "", text),
            """\
void f( float* given) {
float a[ 32 ] = place(0), b = place(1);
metal :: array < float , N > c[ 2 ] [ N < 4 ? 1 : 2 ] = place(2);
atomic_uint count = place(3);
float* p = a;
auto& r = b;
float (&s)[32] = a;
for ( float* q = given; q < p; ++q) {}
}""",
        )

    def test_the_sum_of_visible_threadgroup_variables_is_checked(self):
        text = erase("""
            kernel void f() {
              float static threadgroup a[32], b;
              { threadgroup int c; }
              threadgroup int d;
            }
        """)
        found = [line.partition("; static_assert")[2] for line in text.splitlines()]
        self.assertExpectedInline(
            "\n".join(filter(None, found)),
            """\
(sizeof(a) + sizeof(b) <= 32768, "threadgroup memory: a, b");
(sizeof(a) + sizeof(b) + sizeof(c) <= 32768, "threadgroup memory: a, b, c"); }
(sizeof(a) + sizeof(b) + sizeof(d) <= 32768, "threadgroup memory: a, b, d");""",
        )

    def test_overloads_by_address_space_become_one(self):
        self.assertExpectedInline(
            erase("""
                template <typename T> T get(device T* p, uint i) { return p[i]; }
                template <typename T> T get(threadgroup T* q, uint j) { return q[j]; }
                template <typename T> T get(constant T* p, uint i) { return p[i]; }
                struct Op {
                  float operator()(float a) const constant { return a; }
                  float operator()(float a) const thread { return a; }
                  float operator()(float a) thread { return a; }
                };
                struct Other { float operator()(float a) const constant { return -a; } };
            """),
            """\
template <typename T> T get( T* p, uint i) { return p[i]; }
template <typename T> T get(const T* p, uint i) { return p[i]; }
struct Op {
float operator()(float a) const { return a; }
float operator()(float a) { return a; }
};
struct Other { float operator()(float a) const { return -a; } };""",
        )

    def test_specializations_by_address_space_become_one(self):
        self.assertExpectedInline(
            erase("""
                template <typename T> struct bare { using type = T; };
                template <typename T> struct bare<device T> { using type = T; };
                template <typename T> struct bare<constant T> { using type = T; };
                template <typename T> struct bare<device T*> { using type = T*; };
                template <typename T> struct bare<thread T*> { using type = T*; };
            """),
            """\
template <typename T> struct bare { using type = T; };
template <typename T> struct bare<const T> { using type = T; };
template <typename T> struct bare< T*> { using type = T*; };""",
        )

    def test_conditionals(self):
        text = erase("""
            void f(half h, float x, bool c, device int* p) {
              float a = c ? h : x;
              float b = c ? (x > 0 ? h : 1.0) : x;
              int n = c ? 1 : 2;
              c ? g(x) : g(h);
              switch (n) { case 1: x = c ? 1 : h; default: break; }
              return c ? p[0] : 0;
            }
        """)
        self.assertExpectedInline(
            text.replace("::mpskit::other_arm", "ARM"),
            """\
void f(half h, float x, bool c, int* p) {
float a = c ? h : ARM<decltype(h)> = x;
float b = c ? (x > 0 ? h : ARM<decltype(h)> = 1.0f) : \
ARM<decltype((x > 0 ? h : ARM<decltype(h)> = 1.0f))> = x;
int n = c ? 1 : 2;
c ? g(x) : g(h);
switch (n) { case 1: x = c ? 1 : ARM<decltype(1)> = h; default: break; }
return c ? p[0] : ARM<decltype(p[0])> = 0;
}""",
        )

    def test_swizzles_by_vector_size(self):
        used = program("v.xy = w.zw; p->rgb; q.xyzx; r.foo; s.x; t.xg;").swizzles
        self.assertEqual(used, {"xy", "zw", "rgb", "xyzx"})
        self.assertExpectedInline(
            swizzle_macros(used),
            """\
#define MPSKIT_SWIZZLES_VEC2(S2, S3, S4) S2(xy, 0, 1)
#define MPSKIT_SWIZZLES_VEC3(S2, S3, S4) S3(rgb, 0, 1, 2) S2(xy, 0, 1) S4(xyzx, 0, 1, 2, 0)
#define MPSKIT_SWIZZLES_VEC4(S2, S3, S4) S3(rgb, 0, 1, 2) S2(xy, 0, 1) S4(xyzx, 0, 1, 2, 0) \
S2(zw, 2, 3)""",
        )


class KernelsTest(TestCase):
    def test_plain_kernels(self):
        found = kernels("""
            kernel void first(device float* out [[buffer(2)]], constant float& v [[buffer(0)]],
                              threadgroup float* scratch [[threadgroup(1)]],
                              uint2 p [[thread_position_in_grid]]) {}
            namespace ns {
            [[kernel, max_total_threads_per_threadgroup(256)]] void second(device int* x) {}
            }
            [[host_name("third")]] kernel void other(ushort lane [[thread_index_in_simdgroup]]) {}
            void no_kernel(device float* x) {}
        """)
        self.assertExpectedInline(
            "\n".join(map(describe, found)),
            """\
first: &::first, at most 1024 threads
  out: buffer(2)
  v: buffer(0) &
  scratch: threadgroup(1)
  p: thread_position_in_grid
ns::second: &::ns::second, at most 256 threads
  x: buffer(0)
third: &::other, at most 1024 threads
  lane: thread_index_in_simdgroup""",
        )

    def test_instantiations(self):
        found = kernels("""
            namespace c10 { namespace metal {
            template <typename T, typename I> kernel void f(device T* out, constant I& n);
            template <typename T, typename I>
            kernel void f(device T* out [[buffer(1)]], constant I& n [[buffer(0)]]) {}
            template <typename T> [[kernel]] void g(device T* x,
                                                    uint i [[thread_position_in_grid]]) {}
            } }
            template [[host_name("f" "_" "float")]] kernel void ::c10::metal::f<float, uint>(
                device float* out, constant uint& n);
            template [[host_name("g_half")]] [[kernel]] decltype(c10::metal::g<half>)
                c10::metal::g<half>;
            template [[host_name("g_int")]] kernel void c10::metal::g(device int* x, uint i);
            template <typename T> kernel void never_instantiated(device T* x) {}
        """)
        self.assertExpectedInline(
            "\n".join(map(describe, found)),
            """\
f_float: &c10 :: metal :: f < float , uint >, at most 1024 threads
  out: buffer(1)
  n: buffer(0) &
g_half: &c10 :: metal :: g < half >, at most 1024 threads
  x: buffer(0)
  i: thread_position_in_grid
g_int: static_cast<void (*)({parameters})>(&c10 :: metal :: g), at most 1024 threads
  x: buffer(0)
  i: thread_position_in_grid""",
        )

    def test_a_template_is_found_from_the_instantiations_scope_outwards(self):
        found = kernels("""
            namespace other { template <typename T> kernel void f(device T* x, constant T& y) {} }
            template <typename T> kernel void f(device T& x) {}
            template [[host_name("f_int")]] kernel void f<int>(device int& x);
            namespace other {
            template [[host_name("g_int")]] kernel void f<int>(device int* x, constant int& y);
            }
        """)
        self.assertEqual([len(kernel.parameters) for kernel in found], [1, 2])

    def test_entry_points(self):
        text = program("""
            template <typename T> kernel void f(device T* x, uint i [[thread_position_in_grid]]) {}
            template [[host_name("f_int")]] kernel void f(device int* x, uint i);
        """)
        unit = translation_unit(text, read_kernels(text))
        self.assertIn(
            "template  void f( int* x, uint i); static constexpr auto mpskit_kernel_0 = "
            "static_cast<void (*)( int* x, uint i)>(&f);",
            unit.replace("template   ", "template  "),
        )
        self.assertIn(
            "kernel_0(Pointer{buffers[0]}, builtins::thread_position_in_grid(thread));", unit
        )
        self.assertIn('{"f_int", entry_0, parameters_0, 1, 1024},', unit)

    def test_errors_name_the_place(self):
        cases = {
            "kernel void f(uint i) {}": (
                "program_source:1:15: error: parameter 'i' has no attribute; a value parameter "
                "needs one that gives a position [kernel-parameter]"
            ),
            "kernel void f(device int* x [[buffer(31)]]) {}": (
                "program_source:1:15: error: buffer index 31: the last one is 30 [buffer-index]"
            ),
            '\nkernel void f() {}\nnamespace a { [[host_name("f")]] kernel void g() {} }': (
                "program_source:3:15: error: two kernels named 'f'"
            ),
            'template [[host_name("f")]] kernel void f<float>(device float*);': (
                "program_source:1:1: error: no kernel template is named 'f'"
            ),
            "kernel void f(texture2d<float> t [[texture(0)]]) {}": (
                "program_source:1:15: error: 't' is a texture, sampler or the like; mpskit runs "
                "kernels on buffers [texture]"
            ),
            "kernel void f( {}": "program_source:1:14: error: '(' has no partner",
            '# 7 "a.h"\n  }': "a.h:7:3: error: '}' has no partner",
        }
        for text, expected in cases.items():
            with pytest.raises(CompileError) as caught:
                kernels(text)
            self.assertEqual(str(caught.value), expected)


@pytest.mark.parametrize(
    "expression, value",
    [
        ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("-7 / 2", -3), ("-7 % 2", -1), ("1 << 5", 32),
        ("0x1F & ~1", 30), ("010 + 0b11", 11), ("N > 3 ? N / 2 : 0", 2), ("ns::N * 2u", 8),
        ("sizeof(float) * N", 16), ("uint(3) + (int)N", 7), ("static_cast<uint>(N)", 4),
        ("N == 4 && !false || true", 1), ("1'000", 1000),
        ("M", None), ("1 / 0", None), ("1 +", None), ("f(1)", None), ("1 << 99", None), ("", None),
        ("(" * 50 + "1" + ")" * 50, None), ("2.5", None),
    ],
)  # fmt: skip
def test_constant_expressions(expression: str, value: int | None) -> None:
    texts = [token.text for token in Source(expression).tokens]
    assert evaluate(texts, {"N": 4}.get) == value


class IncludesTest(TestCase):
    def test_embedding(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "a.h").write_text("#pragma once\nint a;\n")
            Path(folder, "b.h").write_text('#include "a.h"\n#include <metal_stdlib>\nint b;\n')
            embedded = embed_includes(
                "#include <a.h>\n#include <b.h>\n#include <gone.h>\nint c;\n",
                "main",
                [Path(folder)],
            )
            self.assertExpectedInline(
                embedded.replace(str(Path(folder).resolve()), "DIR"),
                """\
#line 1 "main"
#line 1 "DIR/a.h"

int a;
#line 2 "main"
#line 1 "DIR/b.h"
#line 2 "DIR/b.h"

int b;
#line 3 "main"
#include <gone.h>
int c;
""",
            )

    def test_reading_a_compilers_messages(self):
        output = (
            "x.metal:3:5: error: 'y' was not declared\n"
            "   3 |   y = 1;\n"
            "In file included from a.h:1:\n"
            "/a/b.h:7: fatal error: no\n"
            "x.metal:1:1: note: here\n"
        )
        self.assertEqual(
            [str(d) for d in read_diagnostics(output)],
            [
                "x.metal:3:5: error: 'y' was not declared",
                "/a/b.h:7:1: error: no",
                "x.metal:1:1: note: here",
            ],
        )


FRAGMENTS = st.sampled_from(
    """
    kernel void f ( ) { } [[ ]] [[buffer(0)]] device constant threadgroup thread float half x y
    < > >> :: , ; = * & template typename struct namespace operator 1.0 .5e3 0x1p2 1.0h "s" 'c'
    R"(raw)" // # \\ ~ ? : . -> const uint static using enum decltype alignas
    """.split()
    + ["\n"]
)


@given(st.lists(FRAGMENTS, max_size=60).map(" ".join))
def test_any_token_soup_is_erased_or_refused(text: str) -> None:
    try:
        parsed = Program(Source(text))
        found = read_kernels(parsed)
        unit = translation_unit(parsed, found)
    except CompileError as error:
        assert error.diagnostics
    else:
        assert unit.count("\n") >= text.count("\n")


@given(st.text(max_size=80))
def test_any_text_is_erased_or_refused(text: str) -> None:
    try:
        erase_source = Eraser(Program(Source(text)), lambda *_: "").erase()
    except CompileError as error:
        assert error.diagnostics
    else:
        assert isinstance(erase_source, str)

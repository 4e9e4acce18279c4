"""Mistakes that authors of kernels make: what is said, and where, whichever compiler there is."""

# ruff: noqa: E501 - messages stand as they are printed

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from expecttest import TestCase

from mpskit.metal import host_compiler
from mpskit.metal.checking import check
from mpskit.metal.errors import Diagnostic

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
PARAMETERS = "device float* x, constant uint& n, uint i [[thread_position_in_grid]]"
COMPILERS = [host_compiler.find_compiler().command]
if importlib.util.find_spec("ziglang"):
    COMPILERS.append((sys.executable, "-m", "ziglang", "c++"))


def in_kernel(body: str, *, ahead: str = "") -> str:
    return f"{ahead}kernel void k({PARAMETERS}) {{ {body} }}"


def diagnostics(source: str, file: Path) -> list[Diagnostic]:
    file.write_text(HEAD + source + "\n")
    return list(check(file, include_dirs=(), metal_version=320).diagnostics)


# What the front end and the lint say is the same with every compiler: one mistake a line.
MISTAKES = [
    "kernel void k(device float* x, uint i) {}",
    "kernel void k(device float* x, uint i [[thread_position_in_gird]]) {}",
    "kernel void k(device float* x, float i [[thread_position_in_grid]]) {}",
    "kernel void k(device float* x, uint2 i [[thread_index_in_simdgroup]]) {}",
    "kernel void k(device float* x [[buffer(0)]], device float* y [[buffer(0)]]) {}",
    "kernel void k(device float* x, threadgroup int* s [[threadgroup(40)]]) {}",
    "kernel void k(device float* x [[buffer(N)]]) {}",
    "kernel void k(device float* x, uint n [[buffer(1)]]) {}",
    "kernel void k(device float* x, const uint& n) {}",
    "kernel float k(device float* x) { return *x; }",
    "kernel void k(texture2d<float> t [[texture(0)]]) {}",
    "kernel void k(raytracing::instance_acceleration_structure s [[buffer(0)]]) {}",
    "kernel void k(tensor<device half, dextents<int, 2>> t) {}",
    "#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>",
    '#include "utils/gone.h"',
    "template [[host_name(\"q\")]] kernel void q<float>(device float*);",
    "template <typename T> kernel void m(device T* x) {} template kernel void m<int>(device int*);",
    "kernel void k(device float* x) {} kernel void k(device int* x) {}",
    in_kernel("float a = 1; g(&a);", ahead="void g(device float* p) {} "),
    in_kernel("threadgroup float s[4]; g(s);", ahead="void g(device float* p) {} "),
    in_kernel("g(x[i]);", ahead="void g(thread float& p) {} "),
    in_kernel("device uint* p = &n;"),
    in_kernel("n = 4;"),
    in_kernel("x[i] = (x[i] + 1;"),
    in_kernel("if (i < n) { x[i] = 1;"),
    in_kernel("x[i] = 1; }"),
    in_kernel("double d = 1;"),
    in_kernel("float a[n]; a[0] = 1;"),
    in_kernel("x[i] = new float;"),
]  # fmt: skip


class TestMistakes(TestCase):
    maxDiff = None

    def test_front_end_and_lint(self):
        with TemporaryDirectory() as folder:
            file = Path(folder, "a.metal")
            lines = []
            for source in MISTAKES:
                found = [d for d in diagnostics(source, file) if d.rule or d.severity == "error"]
                assert found, source
                first = found[0]
                assert first.location.file == str(file)
                lines.append(str(first).removeprefix(f"{file}:").removeprefix("3:"))
        self.assertExpectedInline(
            "\n".join(lines),
            """\
32: error: parameter 'i' has no attribute; a value parameter needs one that gives a position [kernel-parameter]
32: error: parameter 'i' has [[thread_position_in_gird]]; a value parameter needs one that gives a position; did you mean [[thread_position_in_grid]]? [kernel-parameter]
32: error: [[thread_position_in_grid]] is a ushort or uint, or a vector of two or three; not float [kernel-parameter]
32: error: [[thread_index_in_simdgroup]] is a ushort or uint, not uint2 [kernel-parameter]
46: error: 'x' and 'y' are both at buffer index 0 [buffer-index]
32: error: threadgroup index 40: the last one is 30 [buffer-index]
15: error: 'buffer' takes an integer constant, not 'N'
32: error: parameter 'n' is a value in a buffer: write 'constant uint& n' [kernel-parameter]
42: error: reference 'n' has no address space [address-space]
1: error: kernel 'k' returns float; kernels return void [kernel-return]
15: error: 'texture2d' is not supported; mpskit runs kernels on buffers [texture]
27: error: 'instance_acceleration_structure' is not supported; mpskit runs kernels on buffers [texture]
15: error: 'tensor' is not supported; mpskit runs kernels on buffers [tensor]
10: error: 'MetalPerformancePrimitives/MetalPerformancePrimitives.h' is not supported; mpskit runs kernels on buffers [tensor]
10: error: no include folder has 'utils/gone.h'
1: error: no kernel template is named 'q'
53: warning: this instantiation of 'm' has no host_name [host-name]
35: error: two kernels named 'k'
130: error: 'g' takes a device pointer; this is thread memory [address-space]
141: error: 'g' takes a device pointer; this is threadgroup memory [address-space]
117: error: 'g' takes a thread reference; this is device memory [address-space]
105: error: 'p' points to device memory; this is constant memory [address-space]
88: error: 'n' is in the constant address space, which is read-only [write-to-constant]
95: error: '(' has no partner
86: error: '{' has no partner
100: error: '}' has no partner
88: error: 'double' does not exist in Metal [double]
95: error: the array's length depends on the variable 'n' [variable-length-array]
95: error: 'new' is not supported [new-delete]""",
        )


# The place, and words that each compiler has of its own: `|` stands between them.
COMPILED = {
    "missing semicolon": (in_kernel("float a = x[i]\nx[i] = a;"), ("x[i] = a|", "expected")),
    "unknown identifier": (in_kernel("x[i] = vaule;"), ("vaule", "'vaule'")),
    "suggestion": (in_kernel("x[i] = simd_sumn(x[i]);"), ("simd_sumn", "'simd_sumn'")),
    "no namespace": (in_kernel("x[i] = metl::exp(x[i]);"), ("metl", "'metl'")),
    "unknown type": (in_kernel("flaot a = 1;"), ("flaot", "'flaot'")),
    "argument count": (in_kernel("x[i] = simd_sum(x[i], 1);"),
                       ("simd_sum|(", "it takes 1 argument, not 2")),
    "own function's count": (in_kernel("x[i] = g(1);", ahead="float g(float a, int b);"),
                             ("g(|(", "few arguments|no matching function")),
    "template argument": (in_kernel("x[i] = g<float>(1);", ahead="template <int N> int g(int);"),
                          ("g<|(", "no matching function for call to 'g")),
    "constant pointer": ("kernel void k(device const float* x) { x[0] = 1; }",
                         ("x[0]|= 1", "read-only")),
    "swizzle": ("kernel void k(device float2* x) { *x = x->xz; }", ("xz", "'xz'")),
    "member": ("struct P { uint size; }; kernel void k(constant P& p) { uint a = p.sise; }",
               ("sise", "'sise'")),
    "vectors of two sizes": ("kernel void k(device float4* x, device float3* y) { *x = *x + *y; }",
                             ("+", "'float4'")),
    "float into bfloat": ("kernel void k(device bfloat* x) { *x = 1.5f; }", ("=|1.5f", "=")),
    "macro's arguments": ("#define ADD(a, b) (a + b)\n" + in_kernel("x[i] = ADD(x[i]);"),
                          ("ADD|)|;", "argument")),
    "#error": ('#if 1\n#error "needs more"\n#endif', ("error", "needs more")),
    "unterminated #if": ("#if 1", ("if|#if", "unterminated")),
    "barrier's flags": (in_kernel("threadgroup_barrier(mem_flags::mem_shared);"),
                        ("mem_shared", "'mem_shared'")),
    "static_assert": (in_kernel("g<6>();", ahead="template <int N> void g() {"
                                                  " static_assert(N % 4 == 0, \"by four\"); }\n"),
                      ("N %|==", "by four")),
    "suffix": (in_kernel("x[i] = 1.0zz;"), ("1.0zz|zz", "suffix")),
    "deep in c10": (
        "#include <c10/metal/reduction_utils.h>\nstruct S { float v; };\n"
        + in_kernel("S s; x[i] = c10::metal::simd_sum(s).v;"),
        ("c10::metal::simd_sum|simd_sum|(", "no matching function for call to 'simd_sum"),
    ),
    "in an instantiation": (
        "template <typename T> struct Op { T operator()(T a) { return a.real; } };\n"
        "template <typename T, typename F> kernel void m(device T* x) { *x = F()(*x); }\n"
        'template [[host_name("m")]] kernel void m<float, Op<float>>(device float*);',
        ("a.real|real|.real", "'float'"),
    ),
}  # fmt: skip


@pytest.fixture(
    scope="module", params=COMPILERS, ids=lambda c: "zig" if "ziglang" in c else Path(c[0]).name
)
def compiler(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", shlex.join(request.param))
        host_compiler.find_compiler.cache_clear()
        yield
    host_compiler.find_compiler.cache_clear()


@pytest.mark.parametrize("name", COMPILED)
def test_compilers(name: str, compiler: None, tmp_path: Path) -> None:
    source, (begins, words) = COMPILED[name]
    file = tmp_path / "a.metal"
    found = [d for d in diagnostics(source, file) if d.severity == "error"]
    assert found
    lines = file.read_text().splitlines()
    for diagnostic in found:
        assert diagnostic.location.file == str(file)
        assert not any(inside in diagnostic.message for inside in ("mpskit", "entry::", "/shim/"))
    first = found[0]
    rest = lines[first.location.line - 1][first.location.column - 1 :]
    assert any(rest.startswith(b) if b else rest == "" for b in begins.split("|")), (first, rest)
    assert any(word in first.message for word in words.split("|")), first

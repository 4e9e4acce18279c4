"""Each rule of the lint: what it must find, and what looks alike and is right."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from mpskit.metal.errors import Diagnostic
from mpskit.metal.frontend.loading import load, system_dirs
from mpskit.metal.frontend.preprocess import preprocess
from mpskit.metal.frontend.sources import SourceLines
from mpskit.metal.frontend.structure import Program
from mpskit.metal.frontend.tokens import Source
from mpskit.metal.host_compiler import find_compiler
from mpskit.metal.lint import RULES, lint

POSITIONS = """
uint tid [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
uint sg [[simdgroup_index_in_threadgroup]], uint local [[thread_index_in_threadgroup]],
uint3 position [[thread_position_in_grid]]
""".replace("\n", " ")


def found(text: str) -> list[Diagnostic]:
    """What the lint says of a text; comments are gone when it sees that, as after preprocessing."""
    text = textwrap.dedent(text)
    lines = SourceLines(f'#line 1 "program_source"\n{text}')
    return lint(Program(Source(re.sub(r"//[^\n]*", "", text))), lines)


def in_kernel(body: str, parameters: str = "device float* x, constant uint& n") -> str:
    """A kernel whose body begins in the second line."""
    return f"kernel void k({parameters}, {POSITIONS}) {{\n{body}\n}}"


# For each rule, sources with the text that the message must point at.
BROKEN: dict[str, list[tuple[str, str]]] = {
    "address-space": [
        ("float f(float* x) { return *x; }", "* x"),
        ("float f(const float &x) { return x; }", "&x"),
        ("template <typename T> T f(const T* x, device T* y) { return *x; }", "* x"),
        ("float f(float (&x)[4]) { return x[0]; }", "&x"),
        ("struct S { float v; float get(S& s) { return s.v; } };", "& s"),
        ("float f(vec<float, 4>* x) { return x->x; }", "* x"),
        (in_kernel("float* p = &x[1];\nx[0] = *p;"), "* p"),
        (in_kernel("const uint &m = n;"), "&m"),
        ("void g(device float* p) {}\n" + in_kernel("float a = 1; g(&a);"), "&a"),
        ("void g(device float* p) {}\n" + in_kernel("threadgroup float s[4];\ng(s);"), "s)"),
        ("void g(thread float& p) {}\n" + in_kernel("g(x[tid]);"), "x[tid])"),
        ("void g(constant uint& p) {}\n" + in_kernel("uint a[2] = {n, n}; g(a[1]);"), "a[1])"),
        (in_kernel("constant uint* q = &n;\ndevice uint* r = q; x[0] = *r;"), "q; x"),
        (in_kernel("float a = 1;\ndevice float* p = &a; x[0] = *p;"), "&a"),
    ],
    "kernel-return": [
        ("kernel int k(device float* x) { return 1; }", "kernel int"),
        ("[[kernel]] float3 k(device float* x) { return 1; }", "[[kernel"),
    ],
    "host-name": [
        ("template <typename T> kernel void a(device T* x) {}\n"
         "template [[kernel]] void a<float>(device float*);", "template [["),
    ],
    "tensor": [
        ("kernel void k(tensor<device half, dextents<int, 2>> a [[buffer(0)]]) {}", "tensor<"),
        ("void f(thread cooperative_tensor<float>& t) {}", "cooperative"),
    ],
    "double": [
        (in_kernel("double s = 0;"), "double"),
        ("double f(float x) { return x; }", "double"),
        ("template <typename T> T f(); kernel void k(device float* x) { *x = f<double>(); }",
         "double"),
    ],
    "write-to-constant": [
        ("void f(constant float* x, uint i) { x[i] = 1; }", "x[i]"),
        ("void f(constant float* x) { *x = 1; }", "x ="),
        ("void f(constant int& n) { n += 1; }", "n +="),
        ("void f(constant int& n) { ++n; }", "n; }"),
        ("struct P { uint a; }; void f(constant P& p) { p.a = 1; }", "p.a"),
        ("constant float table[2] = {0, 1};\nvoid f(uint i) { table[i] *= 2; }", "table[i]"),
        ("void f(constant float4* x, uint i) { x[i].y = 1; }", "x[i]"),
        ("struct P { uint a; }; void f(constant P* p) { p->a--; }", "p->a"),
    ],
    "threadgroup-memory": [],  # the compiler adds up: see test_check.py
    "buffer-index": [("kernel void k(device float* x [[buffer(31)]]) {}", "device")],
    "kernel-parameter": [("kernel void k(device float* x, uint i) {}", "uint i")],
    "recursion": [
        ("int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }", "f(n - 1)"),
        ("int g(int n);\nint f(int n) { return g(n); }\nint g(int n) { return f(n - 1); }", "f(n"),
        ("struct S { int f(int n) { return n ? f(n - 1) : 0; } };", "f(n - 1)"),
        ("namespace a { int f(int n) { return n ? a::f(n - 1) : 0; } }", "f(n - 1)"),
        ("template <typename T> T f(T n) { if (n > 0) return f(n - 1); return n; }", "f(n - 1)"),
    ],
    "goto": [(in_kernel("again:\nif (n > 2) goto again;"), "goto")],
    "variable-length-array": [
        (in_kernel("float a[n];"), "[n]"),
        (in_kernel("uint m = 4;\nfloat a[2 * m];"), "[2 * m]"),
        ("void f(uint size) { vec<float, 2> a[size]; }", "[size]"),
        (in_kernel("threadgroup float a[n];"), "[n]"),
    ],
    "exception": [
        (in_kernel("try { x[0] = 1; } catch (...) {}"), "try"),
        ("void f(int n) { if (n) throw 1; }", "throw"),
    ],
    "virtual": [("struct S { virtual float f(float x) { return x; } };", "virtual")],
    "new-delete": [
        (in_kernel("thread float* p = new float[4];"), "new"),
        ("void f(thread int* p) { delete p; }", "delete"),
    ],
    "rtti": [
        ("int f(int x) { return typeid(x) == typeid(int); }", "typeid"),
        ("struct S {}; void f(thread S* s) { dynamic_cast<thread S*>(s); }", "dynamic_cast"),
    ],
    "thread-local": [("void f() { thread_local int x = 1; }", "thread_local")],
    "inline-assembly": [(in_kernel('asm("nop");'), "asm"), (in_kernel('__asm__("");'), "__asm__")],
    "kernel-call": [
        ("kernel void a(device float* x) { *x = 1; }\nkernel void b(device float* x) { a(x); }",
         "a(x)"),
        ("template <typename T> kernel void a(device T* x) {}\n"
         "kernel void b(device float* x) { a<float>(x); }", "a<float>"),
    ],
    "texture": [
        ("kernel void k(texture2d<float> t [[texture(0)]]) {}", "texture2d"),
        ("constexpr constant sampler s(1);", "sampler"),
        ("vertex float4 v(uint i [[vertex_id]]) { return 0; }", "vertex f"),
        ("[[fragment]] float4 f() { return 0; }", "[[frag"),
        ("void f(metal::raytracing::instance_acceleration_structure s) {}", "instance"),
    ],
    "program-scope-variable": [
        ("int count = 0;", "count"),
        ("const float PI2 = 6.28;", "PI2"),
        ("namespace a { static constexpr uint N = 4; }", "N ="),
        ("threadgroup float scratch[32];", "scratch"),
        ("float a[2] = {1, 2};", "a["),
        ("uint2 gid [[thread_position_in_grid]];", "gid"),
    ],
    "fast-math": [
        (in_kernel("for (uint i = 0; i < n; ++i) x[i] = fast::exp(x[i]);"), "fast::exp"),
        (in_kernel("float s = 0;\ns += metal::fast::log(x[0]);"), "fast::log"),
        (in_kernel("x[0] = simd_sum(fast::exp(x[tid]));"), "fast::exp"),
        (in_kernel("while (x[0] < 1) { x[0] = x[0] * fast::cos(x[0]); }"), "fast::cos"),
    ],
    "divergent-simd": [
        (in_kernel("if (lane == 0) { x[0] = simd_sum(x[tid]); }"), "simd_sum"),
        (in_kernel("if (tid < n) x[tid] = simd_max(x[tid]);"), "simd_max"),
        (in_kernel("const bool leader = lane == 0;\nif (leader) x[0] = metal::simd_sum(x[1]);"),
         "simd_sum"),
        (in_kernel("if (lane < 16) { x[0] = 1; } else { x[1] = simd_shuffle_xor(x[0], 1); }"),
         "simd_shuffle_xor"),
        (in_kernel("if (simd_is_first()) { x[0] = simd_sum(x[0]); }"), "simd_sum"),
        (in_kernel("if (position.x % 2 == 0) { x[0] = quad_sum(x[0]); }"), "quad_sum"),
        (in_kernel("for (uint i = lane; i < n; i += 32) x[i] = simd_sum(x[i]);"), "simd_sum"),
        (in_kernel("uint i = 0;\nwhile (i < n) { x[0] = simd_sum(x[i]); i += lane; }"), "simd_sum"),
        (in_kernel("uint i = 0;\ndo { x[0] = simd_sum(x[i]); } while (++i < lane);"), "simd_sum"),
        (in_kernel("if (tid >= n) return;\nx[tid] = simd_sum(x[tid]);"), "simd_sum"),
        (in_kernel("for (uint i = 0; i < n; ++i) {\nif (lane > i) continue;\n"
                   "x[i] = simd_max(x[i]); }"), "simd_max"),
        (in_kernel("for (uint i = 0; i < n; ++i) {\nx[i] = simd_max(x[i]);\n"
                   "if (lane == i) break; }"), "simd_max"),
        (in_kernel("switch (lane) { case 0: x[0] = simd_sum(x[1]); break; }"), "simd_sum"),
        (in_kernel("x[0] = lane < 4 ? simd_sum(x[1]) : 0;"), "simd_sum"),
        (in_kernel("x[0] = lane < 4 && simd_any(x[1] > 0);"), "simd_any"),
        (in_kernel("x[0] = (lane & 1) == 0 || simd_all(x[1] > 0);"), "simd_all"),
        (in_kernel("if (local > 5) x[0] = simd_sum(x[1]);"), "simd_sum"),
        (in_kernel("if (local / 2 == 0) x[0] = simd_sum(x[1]);"), "simd_sum"),
        (in_kernel("if (local >> 2 == 0) x[0] = simd_sum(x[1]);"), "simd_sum"),
        (in_kernel("const uint at = min(lane, 4u);\nif (at == 2) x[0] = simd_sum(x[1]);"),
         "simd_sum"),
        (in_kernel("uint rows = 4;\nif (lane < 2) rows = 2;\n"
                   "for (uint i = 0; i < rows; ++i) x[i] = simd_sum(x[i]);"), "simd_sum"),
        (in_kernel("uint best = 0;\ndo { best = simd_max(best);\nx[best] = 1;\n"
                   "if (lane < 4) best = lane; } while (best < n);"), "simd_max"),
        (in_kernel("uint last = 0;\nif (local == 0) last = n;\n"
                   "if (last == 4) x[0] = simd_sum(x[1]);"), "simd_sum"),
    ],
    "index-overflow": [
        (in_kernel("ulong at = tid * n;\nx[at] = 0;"), "* n"),
        (in_kernel("x[static_cast<ulong>(tid * n + lane)] = 0;"), "* n"),
        (in_kernel("x[size_t(position.y * n)] = 0;"), "* n"),
        ("struct P { uint stride; };\n" + in_kernel("long at = (long)(tid * p.stride);",
                                                    "constant P& p, device float* x"), "* p"),
    ],
    "missing-barrier": [
        (in_kernel("threadgroup float s[32];\ns[lane] = x[tid];\nx[tid] = s[31 - lane];"), "s[31"),
        (in_kernel("threadgroup float s[32];\nif (lane == 0) s[sg] = x[tid];\n"
                   "if (local < 32) { x[tid] = s[lane]; }"), "s[lane]"),
        (in_kernel("threadgroup float total;\nif (local == 0) { total = x[0]; }\n"
                   "x[tid] = total;"), "total;\n}"),
        (in_kernel("threadgroup float s[32];\ns[lane] = x[tid];\n"
                   "threadgroup_barrier(mem_flags::mem_none);\nx[tid] = s[31 - lane];"), "s[31"),
        (in_kernel("threadgroup float s[8][8];\ns[position.x][position.y] = x[tid];\n"
                   "for (uint k = 0; k < 8; ++k) x[tid] += s[k][position.y];"), "s[k]"),
        (in_kernel("threadgroup float s[2][32];\nuint row = local / 32;\ns[row][lane] = x[tid];\n"
                   "x[tid] = s[n][lane];"), "s[n]"),
        (in_kernel("threadgroup float s[32];\ns[lane] = 1;\nthreadgroup_barrier(mem_flags(2));\n"
                   "s[lane] += 1;\ns[lane] = 2; x[tid] = s[0];"), "s[0]"),
    ],
}  # fmt: skip

RIGHT: dict[str, list[str]] = {
    "address-space": [
        "float f(device float* x, constant uint& n, thread float (&y)[4]) { return *x; }",
        "float f(float device* x, float constant& y, threadgroup float (&z)[2]) { return *x; }",
        "template <typename T> void f(T&& x) {}\nvoid g(auto& x) {}",
        "template <typename F, enable_if_t<is_same_v<F, int*>>* = nullptr> void f(F x) {}",
        "int f(int a, int b, bool c = 1 & 2) { return a * b & c; }",
        "using P = device float*;\nfloat f(P p) { return *p; }",
        "void g(device float* p, thread float& q) {}\n"
        + in_kernel("float a; g(x, a); g(&x[1], a);"),
        "void g(device float* p);\nvoid g(thread float* p);\n" + in_kernel("float a; g(&a);"),
        "template <typename P> void g(P p) {}\n" + in_kernel("float a; g(&a); g(x);"),
        "void g(threadgroup float* p) {}\n" + in_kernel(
            "threadgroup float s[4]; g(s); g(&s[1]); threadgroup float* p = s; g(p); g(p + 1);"),
        "struct S { device float* p; };\nvoid g(device float* p) {}\n"
        + in_kernel("S s; s.p = x; g(s.p); device float* q = s.p; g(q); auto r = x; g(r);"),
        "void g(device float* p) {}\n" + in_kernel("float a; { device float* a = x; g(a); }"),
        in_kernel("device float* p = x; const device float* q = p; int a = 2; a * n;"),
        in_kernel("const auto* p = &x[1]; auto& r = x[0]; thread float* t; x[0] = *p * r;"),
        "struct S { float operator()(float a) const constant { return a; } };",
        "void f(float (*g)(float), int n) {}",
        "float4 f(float4 a) { return float4(a & 1, a * 2); }",
    ],
    "double": [
        'constant char text[] = "double"; // double\nfloat doubled(float x) { return 2.0 * x; }',
        "struct S { int double_; };",
    ],
    "kernel-return": [
        "using Nothing = void;\nkernel Nothing k(device float* x) {}",
        "extern \"C\" kernel void k(device float* x) {}\n[[kernel]] void l(device float* x) {}",
    ],
    "host-name": [
        "template <typename T> kernel void a(device T* x) {}\n"
        'template [[host_name("a_float")]] [[kernel]] void a<float>(device float*);\n'
        "template <typename T> T f(T x) { return x; }\ntemplate float f<float>(float);",
    ],
    "tensor": [
        "template <typename T> struct tensor { T x; };\nvoid f(thread tensor<float>& t) {}",
    ],
    "write-to-constant": [
        in_kernel("*(device float*)address = 1;", "constant ulong& address"),
        in_kernel("*(device const float*)address = 1;", "constant ulong& address"),
        in_kernel("((device float*)address)[tid] = 1;", "constant ulong& address"),
        in_kernel("*reinterpret_cast<device float*>(address) = 1;", "constant ulong& address"),
        "void f(constant float* x, device float* y) { x++; x = x + 1; y[0] = x[0]; }",
        "struct P { device float* out; }; void f(constant P& p) { p.out[0] = 1; *p.out = 2; }",
        "struct P { device float* out; }; void f(constant P* p) { p->out[0] = 1; }",
        "constant float table[1] = {0};\nvoid f(thread float* t) { float table[1]; table[0] = 1; }",
        "void f(constant int& n) { int m = n; m = n == 2; if (n <= 3) m += n; }",
        "struct S { float x; };\nconstant float x = 1;\nvoid f(thread S& s) { s.x = x; }",
        "void f(constant int* n) { n += 2; }",
        "constant float k = 2;\nvoid f(float k) { k = 3; }",
    ],
    "buffer-index": ["kernel void k(device float* x [[buffer(30)]]) {}"],
    "kernel-parameter": ["kernel void k(device float* x, uint2 i [[thread_position_in_grid]]) {}"],
    "recursion": [
        "template <int N> int f() { return N + f<N - 1>(); }\ntemplate <> int f<0>() { return 0; }",
        "float f(float x) { return x; }\nfloat f(float2 x) { return f(x.x); }",
        "template <typename T> T f(T x) { return x; }\n"
        "template <typename T, typename... R> T f(T x, R... r) { return x + f(r...); }",
        "float exp(float x) { return metal::exp(x); }",
        "struct A { float f(float x) { return x; } };\nfloat f(float x) { A a; return a.f(x); }",
        "struct A { static float f(float x); };\nfloat f(float x) { return A::f(x); }",
        "template <typename T> T f(T x) {\n"
        "if constexpr (sizeof(T) > 2) return f(short(x)); return x; }",
        "float g(float x) { auto f = [](float y) { return y; }; return f(x); }\n"
        "float f(float x) { return g(x); }",
        "float f(float a, float b) { return a; }\nfloat g(float a) { return f(a, 1); }",
    ],
    "goto": ['constant char s[] = "goto"; // goto'],
    "variable-length-array": [
        "template <uint N> void f(uint n) { float a[N]; float b[2 * N + 1]; a[n] = b[n]; }",
        "constant uint N = 4;\n"
        "void f() { const uint m = 4; constexpr uint k = 2; float a[N], b[m], c[k]; }",
        in_kernel("float a[sizeof(n)]; x[n] = a[n - 1]; return;"),
        "struct P { uint n; static constant uint N = 4; }; void f(P p) { float a[P::N]; }",
        "float f(device float* x, uint i) { return x[i]; }",
    ],
    "exception": ["void f(int n) { int entry = n, catcher = 2; }"],
    "virtual": ["void f(int virtually) {}"],
    "new-delete": [
        "struct S { S(const thread S&) = delete; };\nvoid f(int new_, int old) { new_ = old; }",
    ],
    "rtti": ["void f(int typeid_) {}"],
    "thread-local": ["void f(thread int* local) {}"],
    "inline-assembly": ["void f(int asm_, int assembly) {}"],
    "kernel-call": [
        "void a(device float* x) {}\nkernel void b(device float* x) { a(x); }",
        "kernel void fmax(device float* x, device float* y) { *x = fmax(*x, *y, 1); }",
        "kernel void a(device float* x) {}\nstruct S { void a(int n) {} };\n"
        "kernel void b(device float* x) { S s; s.a(1); }",
        "template <typename T> kernel void a(device T* x) {}\n"
        'template [[host_name("a_float")]] kernel void a<float>(device float*);',
    ],
    "texture": [
        "struct sampler { float x; };\nvoid f(sampler s, int texture, float vertex) {}",
        "void f(float texture2d) { texture2d = 1; }",
    ],
    "program-scope-variable": [
        "constant int a = 1;\nconstant constexpr float b[] = {1, 2};",
        "static constant uint c = 3, d = 4;",
        "struct S { int a; static constant int b = 2; float c = 1; };\nenum E { A, B };",
        "int f(int a);\nusing T = int;\ntypedef float4 U;\nint constant late = 1;",
        "template <typename T> constexpr bool is_mine = false;",
        "struct Later;\nnamespace a { class B; union C; }",
        "static_assert(sizeof(int) == 4, \"int\");\nextern constant int elsewhere;",
    ],
    "fast-math": [
        in_kernel("x[tid] = fast::exp(x[tid]);"),
        in_kernel("for (uint i = 0; i < n; ++i) x[i] = precise::exp(x[i]);"),
        "namespace fast { float f(float x); }",
        in_kernel("float s = 0; s += x[0];\nx[0] = fast::log(s);"),
    ],
    "divergent-simd": [
        in_kernel("float s = simd_sum(x[tid]);\nif (lane == 0) x[0] = s;"),
        in_kernel("if (sg == 0) x[0] = simd_sum(x[lane]);"),
        in_kernel("if (local < 32) x[0] = simd_sum(x[lane]);"),
        in_kernel("if (local < simdgroup_size) x[0] = simd_sum(x[lane]);"),
        in_kernel("if (n > 3) x[0] = simd_sum(x[lane]);"),
        in_kernel("if (position.y < n) x[0] = simd_sum(x[lane]);"),
        in_kernel("const float m = simd_max(x[lane]);\nif (m > 0) x[0] = simd_sum(x[lane]);"),
        in_kernel("if (lane == 0) { x[0] = simd_broadcast_first(x[0]); simd_is_first(); }"),
        in_kernel("const uint group = local / 32;\nif (group == 0) x[0] = simd_sum(x[lane]);"),
        in_kernel("if (tid >= n) return;\nx[tid] = 1;"),
        in_kernel("float s = simd_sum(x[tid]);\nif (tid >= n) return;\nx[tid] = s;"),
        in_kernel("if (sg >= n) return;\nx[tid] = simd_sum(x[tid]);"),
        in_kernel("if (lane == 0) { x[0] = 1; }\nx[tid] = simd_sum(x[tid]);"),
        in_kernel("for (uint i = lane; i < n; i += 32) x[i] = 0;\nx[tid] = simd_sum(x[tid]);"),
        in_kernel("for (uint i = 0; i < n; ++i) x[i] = simd_sum(x[tid]);"),
        in_kernel("for (uint i = lane; i < 1024; i += 32) x[i] = simd_sum(x[i]);"),
        in_kernel("for (uint i = 0; i < 64; i += 32) { uint at = i + lane;\nx[at] = 0; }\n"
                  "for (uint i = 0; i < n; i += 32) { x[i + lane] = simd_sum(x[i]); }"),
        in_kernel("uint best = n;\ndo { if (lane < 4) best = lane;\nbest = simd_min(best); }"
                  " while (best < n);"),
        in_kernel("threadgroup uint one, last;\nif (local == 0) last = n;\n"
                  "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                  "if (last == 4) x[0] = simd_sum(x[1]);"),
        in_kernel("for (uint i = 16; i > 0; i >>= 1) x[tid] += simd_shuffle_down(x[tid], i);"),
        in_kernel("while (true) { if (simd_all(x[tid] > 0)) break;\nx[tid] = simd_sum(x[tid]); }"),
        in_kernel("for (uint i = 0; i < n; ++i) {\nif (i == 3) continue;\n"
                  "x[i] = simd_max(x[i]);\nif (x[i] > 2) break; }"),
        in_kernel("for (uint i = lane; i < n; i += 32) { if (x[i] > 2) break; }\n"
                  "x[0] = simd_sum(x[tid]);"),
        in_kernel("switch (n) { case 0: x[0] = simd_sum(x[1]); break; }"),
        in_kernel("if (n < 4) {\nif (lane != 0) return;\nx[0] = n;\nreturn;\n}\n"
                  "x[tid] = simd_sum(x[tid]);"),
        in_kernel("const uint simd_lane = lane;\nif (tid >= n) return;\n"
                  "for (uint i = 0; simd_lane < i; ++i) x[i] = 0;"),
        in_kernel("switch (lane) { case 0: x[0] = 1; break; default: x[1] = 2; }\n"
                  "x[tid] = simd_sum(x[tid]);"),
        in_kernel("x[0] = n < 4 ? simd_sum(x[1]) : 0;\nx[1] = simd_sum(lane < 4 ? x[1] : 0);"),
        in_kernel("x[0] = n < 4 && simd_any(lane < 4);\nx[1] = simd_any(x[1] > 0) && lane < 4;"),
        in_kernel("if (local < 64 && n > 2) x[0] = simd_sum(x[lane]);"),
        in_kernel("if (local > 31) x[0] = simd_sum(x[lane]);"),
        in_kernel("if (local >> 5 == 0) x[0] = simd_sum(x[lane]);"),
        in_kernel("uint rows = lane;\nrows = simd_max(rows);\n"
                  "for (uint i = 0; i < rows; ++i) x[i] = simd_sum(x[i]);"),
        in_kernel("auto first = [&](uint i) { if (i < lane) return 1.0f; return 2.0f; };\n"
                  "x[0] = simd_sum(first(n));"),
        "struct P { uint x; };\n" + in_kernel("P p;\np.x = lane;\nuint x2 = n;\n"
                                             "if (x2 == 2) x[0] = simd_sum(x[tid]);"),
    ],
    "index-overflow": [
        in_kernel("ulong at = static_cast<ulong>(tid) * n;"),
        in_kernel("ulong at = tid + n; ulong b = 4 * tid; long c = tid * 4;"),
        in_kernel("uint at = tid * n; x[at] = 0;"),
        in_kernel("ulong stride = 2; ulong at = tid * stride; x[tid * n] = 0;"),
        "template <typename I> void f(I a, I b) { ulong at = a * b; }",
        in_kernel("size_t bytes = sizeof(float) * n;"),
        in_kernel("long at = group.x * size.x + lane;", "device float* x, "
                  "uint2 group [[threadgroup_position_in_grid]], "
                  "uint2 size [[threads_per_threadgroup]]"),
        "void f(float a, float b) { long at = long(a * b); }",
    ],
    "missing-barrier": [
        in_kernel("threadgroup float s[32];\ns[lane] = x[tid];\n"
                  "threadgroup_barrier(mem_flags::mem_threadgroup);\nx[tid] = s[31 - lane];"),
        in_kernel("threadgroup float s[32];\ns[lane] = x[tid];\nx[tid] = s[lane];"),
        in_kernel("threadgroup float s[32];\ns[lane] = x[tid];\n"
                  "simdgroup_barrier(mem_flags::mem_threadgroup);\nx[tid] = s[0];"),
        "void sync() { threadgroup_barrier(mem_flags::mem_threadgroup); }\n"
        + in_kernel("threadgroup float s[32];\ns[lane] = 1;\nsync();\nx[tid] = s[0];"),
        in_kernel("threadgroup float s[32];\nif (n > 2) { s[lane] = 1; } else { x[0] = s[0]; }"),
        in_kernel("threadgroup float s[32];\nfor (uint i = 16; i > 0; i /= 2) {\n"
                  "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                  "if (lane < i) s[lane] = s[lane] + s[lane + i];\n}"),
        in_kernel("threadgroup float total;\nif (local == 0) { total = x[0]; x[1] = total; }"),
        in_kernel("threadgroup float s[32];\ns[lane] = 1;\nreduce(s, lane);\nx[tid] = s[0];"),
        in_kernel("threadgroup float s[2][32];\nuint fill = n % 2, full = 1 - fill;\n"
                  "s[fill][lane] = x[tid];\nx[tid] = s[full][31 - lane];"),
        in_kernel("threadgroup float s[64];\nif (local == 0) { s[0] = 1;\nx[0] = s[1]; }"),
        in_kernel("threadgroup float s[2][32];\nuint fill = n % 2, full = 1 - fill;\n"
                  "s[fill][lane] = x[tid];\nuse(s[full], x);"),
        in_kernel("threadgroup float s[64];\nif (local % 2 == 1) { float t = s[local - 1];\n"
                  "s[local - 1] = s[local];\ns[local] += t; }"),
        in_kernel("threadgroup float s[32];\nthreadgroup float* p = s;\np[lane] = 1; x[0] = p[1];"),
    ],
}  # fmt: skip


def cases(table: dict[str, list]) -> list[object]:
    return [
        pytest.param(rule, source, id=f"{rule}-{number}")
        for rule, sources in table.items()
        for number, source in enumerate(sources)
    ]


@pytest.mark.parametrize("rule, case", cases(BROKEN))
def test_finds(rule: str, case: tuple[str, str]) -> None:
    source, at = case
    diagnostics = [d for d in found(source) if d.rule == rule]
    assert diagnostics, f"not found in:\n{source}"
    where = diagnostics[0].location
    line = textwrap.dedent(source).splitlines()[where.line - 1]
    assert (line + "\n}")[where.column - 1 :].startswith(at), diagnostics
    assert diagnostics[0].severity == RULES[rule].severity


@pytest.mark.parametrize("rule, source", cases(RIGHT))
def test_keeps_quiet(rule: str, source: str) -> None:
    assert [d for d in found(source) if d.rule == rule] == []


def test_every_rule_has_cases_and_an_explanation() -> None:
    assert BROKEN.keys() == RULES.keys()
    assert RIGHT.keys() | {"threadgroup-memory"} == RULES.keys()
    for rule in RULES.values():
        assert rule.severity in ("error", "warning")
        assert rule.explanation.count(".") >= 2, "what is wrong, and what to do"


@pytest.mark.parametrize(
    "source",
    [
        "void f(double x) {} // mpskit: allow(double)",
        "void f(double x) {} // a table: mpskit: allow(goto, double)",
        "// mpskit: allow(double)\nvoid f(double x) {}",
    ],
)
def test_a_comment_silences_a_rule(source: str) -> None:
    assert found(source) == []


@pytest.mark.parametrize(
    "source",
    [
        "void f(double x) {} // mpskit: allow(goto)",
        "int a(); // mpskit: allow(double)\nvoid f(double x) {}",
        "// mpskit: allow(double)\n\nvoid f(double x) {}",
        "void f(double x) {} // allow(double)",
    ],
)
def test_other_comments_do_not(source: str) -> None:
    assert [d.rule for d in found(source)] == ["double"]


def test_all_findings_come_in_order() -> None:
    diagnostics = found("""
        int count = 0;
        float f(float* x, double y) { goto end; end: return *x; }
        kernel void k(device float* x, uint i) {}
    """)
    assert [(d.location.line, d.rule) for d in diagnostics] == [
        (2, "program-scope-variable"),
        (3, "address-space"),
        (3, "double"),
        (3, "goto"),
        (4, "kernel-parameter"),
    ]


ATEN_PATCH = Path(__file__).parents[2] / "aten_patch"
REAL_FILES = [
    *sorted(system_dirs()[0].glob("c10/metal/*.h")),
    *sorted(ATEN_PATCH.glob("**/*.metal")),
]


@pytest.mark.parametrize("file", REAL_FILES, ids=lambda file: file.name)
def test_has_nothing_to_say_of_real_files(file: Path) -> None:
    embedded = load(file, [ATEN_PATCH / "aten/src"])
    program = Program(preprocess(embedded, find_compiler(), metal_version=320))
    assert lint(program, SourceLines(embedded)) == []

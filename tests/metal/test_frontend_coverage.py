"""Forms of declarations that real Metal files have, each compiled and run."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import torch

from mpskit.metal import CompileError, compile_shader
from mpskit.metal.launching import Library


def launch(library: Library, name: str, *args: object, threads: int = 1) -> None:
    getattr(library, name)(*args, threads=(threads,), group_size=(threads,))


DECLARATIONS = """
    #include <metal_stdlib>
    using namespace metal;
    #pragma METAL fp contract(off)
    _Pragma("clang diagnostic push")

    constant constexpr uint WIDTH = 1 << 5, GROUPS = 4;
    enum Slots { INPUT, OUTPUT, SCALE = OUTPUT + 3 };
    enum class Mode : uint { add = 1, scale };
    using Input = device const float*;
    typedef device float* Output;
    template <typename T> using Scalar = constant T&;

    /* a comment // with another */ kernel /* here */ void aliases( // and here
        Input input [[buffer(INPUT)]], /* between */ Output output [[buffer(OUTPUT)]],
        Scalar<float> scale [[buffer(SCALE - 2)]],
        uint i [[thread_position_in_grid]]) {
      output[i] = input[i] * scale;
    }

    [[max_total_threads_per_threadgroup(WIDTH * GROUPS)]] [[kernel]]
    void limited(device uint* out) { *out = WIDTH; }

    template <typename T, uint BM, uint BN = 2>
    [[kernel, max_total_threads_per_threadgroup(BM * BN * 32)]]
    void tiled(device T* out, uint i [[thread_position_in_grid]]) { out[i] = T(BM + BN); }
    template [[host_name("tiled_" "4")]] [[kernel]] void tiled<float, 4>(device float*, uint);
    template [[host_name("tiled_" "4_3")]] [[kernel]]
        decltype(tiled<float, 4, (WIDTH > 3 ? 3 : 0)>) tiled<float, 4, 3>;

    [[host_name("east")]] kernel void east_(float device const* in, float device* out,
        int constant& n, float constant (&bias)[2], uint const i [[thread_position_in_grid]]) {
      float const thread *p = nullptr;
      float threadgroup scratch[4], other[2];
      scratch[i] = in[i]; other[i & 1] = 0;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float thread value = scratch[n - 1 - i];
      p = &value;
      out[i] = *p + bias[i & 1];
    }

    kernel void arrays(constant metal::array<float, 4>& in, device array<float, 4>* out,
                       uint i [[thread_position_in_grid]] [[user(whatever)]]) {
      out[0][i] = in[3 - i];
    }

    namespace outer { namespace inner {
    struct Op {
      static constant constexpr float factor = 3;
      static float apply(float x) { return factor * x; }
      template <typename U> struct Nested {
        template <int N> static U times(U x) { return N * x; }
      };
    };
    template <typename O> float call(float x) {
      return O::apply(x) + O::template Nested<float>::template times<2>(x);
    }
    kernel void namespaced(device float* x, uint i [[thread_position_in_grid]]) {
      constant static float table[] = {1.0, 10.0, 100.0, 1000.0};
      x[i] = call<Op>(x[i]) + table[i];
    }
    } }

    #define UNARY(NAME, EXPR)                                                    \\
      kernel void NAME(device const float* in, device float* out,                \\
                       uint i [[thread_position_in_grid]]) {                     \\
        const float x = in[i];                                                   \\
        out[i] = (EXPR);                                                         \\
      }
    UNARY(square, x * x)
    UNARY(cube, x * x * x)

    kernel void lambdas(device float* x, uint i [[thread_position_in_grid]]) {
      const auto twice = [](float a) -> float { return 2 * a; };
      auto add = [&](float a, auto b) { return a + b + i; };
      x[i] = add(twice(x[i]), Mode::scale == Mode(2) ? 1 : 0);
    }

    struct Args { device float* out; device const float* in; uint n; };
    kernel void pointers(constant Args& args, uint i [[thread_position_in_grid]]) {
      if (i < args.n) args.out[i] = args.in[i] + 1;
    }
"""


@pytest.fixture(scope="module")
def library() -> Library:
    return compile_shader(DECLARATIONS)


class TestDeclarations:
    def test_aliases_hide_pointers(self, library):
        x, out = torch.arange(4.0), torch.zeros(4)
        launch(library, "aliases", x, out, 2.5, threads=4)
        assert out.tolist() == [0, 2.5, 5, 7.5]

    def test_constants_in_attributes(self, library):
        assert library.limited.max_threads_per_threadgroup == 128
        assert library.tiled_4.max_threads_per_threadgroup == 256
        assert library.tiled_4_3.max_threads_per_threadgroup == 384
        out = torch.zeros(2)
        launch(library, "tiled_4_3", out, threads=2)
        assert out.tolist() == [7, 7]

    def test_east_qualifiers(self, library):
        x, out = torch.arange(4.0), torch.zeros(4)
        bias = struct.pack("2f", 0.5, 0.25)
        library.east(x, out, 4, bias, threads=4, group_size=4, arg_casts={2: "int32"})
        assert out.tolist() == [3.5, 2.25, 1.5, 0.25]

    def test_arrays(self, library):
        out = torch.zeros(4)
        launch(library, "arrays", (1.0, 2.0, 3.0, 4.0), out, threads=4)
        assert out.tolist() == [4, 3, 2, 1]

    def test_namespaces_classes_and_tables(self, library):
        x = torch.arange(4.0)
        launch(library, "outer::inner::namespaced", x, threads=4)
        assert x.tolist() == [1, 15, 110, 1015]

    def test_kernels_from_macros(self, library):
        x, out = torch.arange(4.0), torch.zeros(4)
        launch(library, "cube", x, out, threads=4)
        assert out.tolist() == [0, 1, 8, 27]

    def test_lambdas(self, library):
        x = torch.arange(4.0)
        launch(library, "lambdas", x, threads=4)
        assert x.tolist() == [1, 4, 7, 10]

    def test_pointers_in_constant_structs(self, library):
        x, out = torch.arange(4.0), torch.zeros(4)
        launch(
            library, "pointers", struct.pack("QQI4x", out.data_ptr(), x.data_ptr(), 3), threads=4
        )
        assert out.tolist() == [1, 2, 3, 0]


class TestFunctionConstants:
    SOURCE = """
        constant int n [[function_constant(0)]];
        constant float scale [[function_constant(1)]];
        constant bool has_bias [[function_constant(2)]];
        constant float2 pair [[function_constant(3)]];
        constant int twice = is_function_constant_defined(n) ? 2 * n : -1;
        kernel void f(device float* x [[buffer(0)]],
                      device const float* bias [[buffer(1), function_constant(has_bias)]],
                      uint i [[thread_position_in_grid]]) {
          const float shift = metal::is_function_constant_defined(scale) ? scale : 100;
          x[i] = twice + shift + pair.y + (has_bias ? bias[i] : 0);
        }
    """

    def test_by_name_and_index(self):
        library = compile_shader(
            self.SOURCE, function_constants={"n": 3, 1: 0.5, "has_bias": True, "pair": [1.0, 2.0]}
        )
        x, bias = torch.zeros(2), torch.tensor([10.0, 20.0])
        launch(library, "f", x, bias, threads=2)
        assert x.tolist() == [18.5, 28.5]

    def test_left_out(self):
        library = compile_shader(
            self.SOURCE, function_constants={"has_bias": False, "pair": [1.0, 2.0]}
        )
        x = torch.zeros(2)
        launch(library, "f", x, threads=2)
        assert x.tolist() == [101, 101]

    def test_errors(self):
        with pytest.raises(CompileError, match=r"'has_bias' \(index 2\) has no value"):
            compile_shader(self.SOURCE, function_constants={"pair": [1.0, 2.0]})
        with pytest.raises(CompileError, match="no function constant 'm'"):
            compile_shader(self.SOURCE, function_constants={"m": 1})


class TestIncludes:
    def test_user_headers(self, tmp_path: Path):
        (tmp_path / "once.h").write_text("#pragma once\nconstant float ONE = 1;\n")
        (tmp_path / "guarded.h").write_text(
            '// A guard.\n#ifndef G_H\n#define G_H\n#include "once.h"\n'
            "constant float TWO = ONE + 1;\n#endif\n"
        )
        (tmp_path / "body.inc").write_text(
            "kernel void NAME(device float* x, uint i [[thread_position_in_grid]]) "
            "{ x[i] = x[i] OP TWO; }\n"
        )
        source = tmp_path / "main.metal"
        source.write_text("""
            #if 0
            #include "once.h"
            #include "missing.h"
            #endif
            /*
            #include "missing too.h"
            */
            #include "guarded.h"
            #include "once.h"
            #include "guarded.h"
            #define NAME add
            #define OP +
            #include "body.inc"
            #undef NAME
            #undef OP
            #define NAME multiply
            #define OP *
            #include "body.inc"
        """)
        library = compile_shader(source)
        x = torch.tensor([3.0])
        launch(library, "add", x)
        launch(library, "multiply", x)
        assert x.item() == 10

    def test_a_file_that_includes_itself(self, tmp_path: Path):
        (tmp_path / "a.h").write_text('#include "b.h"\nconstant int A = 1;\n')
        (tmp_path / "b.h").write_text('#include "a.h"\n')
        library = compile_shader(
            "#include <a.h>\nkernel void f(device int* x) { *x = A; }", include_dirs=[tmp_path]
        )
        x = torch.zeros(1, dtype=torch.int32)
        launch(library, "f", x)
        assert x.item() == 1

    def test_metal_version(self):
        source = "kernel void f(device int* x) { *x = __METAL_VERSION__; }"
        x = torch.zeros(1, dtype=torch.int32)
        for version in (310, 320, 400):
            launch(compile_shader(source, metal_version=version), "f", x)
            assert x.item() == version

"""Forms of Metal that g++ or C++20 would refuse, each compiled and run.

Clang, and with it Apple's compiler, takes them; published kernels use them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
import torch

SOURCE = """
    #include <metal_stdlib>
    #include <metal_logging>
    using namespace metal;

    typedef struct {
      __extension__ union {
        struct { half scale; half shift; };
        half2 both;
      };
      uchar values[4];
    } Block;
    static_assert(sizeof(Block) == 8, "as on the host");

    struct Pair {
      union { struct { float2 first, second; uint count; }; uint words[6]; };
      Pair(float x) : words{0, 0, 0, 0, 0, 7} { first = x; second = 2 * first; count = 3; }
    };

    kernel void anonymous(device const Block* blocks, device float* out) {
      out[0] = float(blocks[0].scale) * blocks[0].values[1] + blocks->shift;
      const Pair pair(1.5f);
      out[1] = float(blocks->both.y) + pair.second.y + pair.count;
    }

    kernel void arrays(constant const int64_t strides[2] [[buffer(1)]],
                       device long* out [[buffer(0)]], constant const float weights[],
                       uint i [[thread_position_in_grid]]) {
      out[i] = strides[i] + long(weights[1 - i]);
    }

    template <int N> void designated(device float* out) {
      float low[N] = {[0 ... N - 1] = -1.0f};
      int some[4] = { [1] = 5, [2 ... N] = N * 2 };
      out[0] = low[0] + low[N - 1];
      out[1] = some[0] * 100 + some[1] * 10 + some[2];
    }
    kernel void designators(device float* out) { designated<3>(out); }

    kernel void short_vectors(device uint4* out, constant uint2& key) {
      uint4 mixed = {key.x, key.y, key.x ^ key.y};
      const uint3 one{7, };
      uint4 whole = {key, 8, 9};
      out[0] = mixed; out[1] = uint4(one, 1); out[2] = whole;
    }

    struct Tag {
      uint count;
      Tag() thread = default;
      Tag() threadgroup = default;
      constexpr Tag() constant = default;
      uint get() const thread { return count; }
      uint get() const device;
    };
    struct Least {
      template <typename T> T operator()(T a, T b) thread { return a < b ? a : b; }
      template <> Tag operator()(Tag a, Tag b) thread { return Tag{a.count + b.count}; }
    };
    kernel void members(device uint* out) {
      Least least;
      out[0] = least(4u, 3u); out[1] = least(Tag{10}, Tag{20}).get();
    }

    struct Complex { float re, im; template <typename T> constexpr Complex(T x) : re(x), im(0) {} };
    float twice(float x) { return 2 * x; }
    Complex twice(Complex x) { return x.re * 3; }
    kernel void promoted(device const half* in, device float* out) {
      out[0] = twice(in[0]); out[1] = twice(Complex(in[0])).re;
    }

    template <typename T> kernel void overloaded(device T* out, constant T& x) { *out = x; }
    template <typename T>
    kernel void overloaded(device T* out, constant T& x, constant T& y) { *out = x + y; }
    template [[host_name("one")]] kernel void overloaded<float>(device float*, constant float&);
    template [[host_name("two")]] kernel void overloaded<float>(
        device float*, constant float&, constant float&);

    constant os_log logger("tests", "forms");
    constant bool forward = true;
    kernel void initialized(volatile coherent(device) device float* out,
                            uint i [[thread_position_in_threadgroup]]) {
      threadgroup float shared[4] = {0};
      shared[i] = i;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      logger.log_debug("thread %u", i);
      out[i] = shared[3 - i];
    }

    struct Flag { char x; operator bool() const thread { return true; }
                  operator bool() const device { return true; } };
    kernel void flags(device const Flag* in, device half* out) {
      half scale; scale = *in; *out = scale;
    }

    using metal::uint;
    template <typename T> struct Count;
    template <uint N> struct Count<vec<float, N>> { static constant constexpr uint value = N; };
    template <typename T, size_t N> uint count(vec<T, N> x) { return N; }
    struct State { float4 value; };
    kernel void sizes(volatile device State& state, device metal::uint* out) {
      state.value = float4(7);
      out[0] = Count<float3>::value;
      out[1] = count(state.value.xy) + count((&state)->value.wzyx.xyz);
    }

    template <typename T> struct Item { T value; uint index; };
    template <typename T> struct _numeric_limits_impl<Item<T>> {
      static constexpr Item<T> lowest() { return Item<T>{numeric_limits<T>::lowest(), 1}; }
    };
    namespace metal {
      METAL_FUNC bfloat gauge(bfloat x) {
        return static_cast<bfloat>(__metal_sqrt(static_cast<float>(x), __METAL_MAYBE_FAST_MATH__));
      }
    }
    kernel void internals(device float* out, uint i [[thread_position_in_grid]]) {
      out[i] = __metal_simd_sum(float(i)) + float(gauge(bfloat(16)))
          + numeric_limits<Item<float>>::lowest().index;
    }
"""


@pytest.fixture(scope="module")
def library(compile_shader: Callable[..., Any]) -> Any:
    return compile_shader(SOURCE)


def launch(library: Any, name: str, *args: object, threads: int = 1) -> None:
    getattr(library, name)(*args, threads=threads, group_size=threads)


def test_anonymous_structs_hold_classes(library):
    out = torch.zeros(2)
    block = struct.pack("<2e4B", 0.5, 2.0, 0, 6, 0, 0)
    launch(library, "anonymous", torch.frombuffer(bytearray(block), dtype=torch.uint8), out)
    assert out.tolist() == [5, 2 + 3 + 3]


def test_array_parameters_are_pointers(library):
    out = torch.zeros(2, dtype=torch.int64)
    strides = torch.tensor([10, 20])
    launch(library, "arrays", out, strides, torch.tensor([1.0, 2.0]), threads=2)
    assert out.tolist() == [12, 21]


def test_designators_of_arrays(library):
    out = torch.zeros(2)
    launch(library, "designators", out)
    assert out.tolist() == [-2, 56]


def test_short_vector_initializers_are_filled_with_zeros(library):
    out = torch.zeros(3, 4, dtype=torch.int32)
    launch(library, "short_vectors", out, torch.tensor([5, 6], dtype=torch.int32))
    assert out.tolist() == [[5, 6, 3, 0], [7, 0, 0, 1], [5, 6, 8, 9]]


def test_members_that_differ_by_address_space_or_are_specialized(library):
    out = torch.zeros(2, dtype=torch.int32)
    launch(library, "members", out)
    assert out.tolist() == [3, 30]


def test_half_goes_to_float_rather_than_to_a_class(library):
    out = torch.zeros(2)
    launch(library, "promoted", torch.tensor([4.0], dtype=torch.half), out)
    assert out.tolist() == [8, 12]


def test_overloaded_kernel_templates(library):
    out = torch.zeros(1)
    launch(library, "one", out, 2.0)
    assert out.item() == 2
    launch(library, "two", out, 2.0, 3.0)
    assert out.item() == 5


def test_initialized_threadgroup_memory(library):
    out = torch.zeros(4)
    launch(library, "initialized", out, threads=4)
    assert out.tolist() == [3, 2, 1, 0]


def test_what_converts_to_bool_is_assigned_to_half(library):
    out = torch.zeros(1, dtype=torch.half)
    launch(library, "flags", torch.zeros(1, dtype=torch.uint8), out)
    assert out.item() == 1


def test_names_from_inside_the_standard_library(library):
    out = torch.zeros(4)
    launch(library, "internals", out, threads=4)
    assert out.tolist() == [6 + 4 + 1] * 4


def test_sizes_of_vectors_are_deduced_for_any_integer_type(library):
    state, out = torch.zeros(4), torch.zeros(2, dtype=torch.int32)
    launch(library, "sizes", state, out)
    assert out.tolist() == [3, 5]
    assert state.tolist() == [7] * 4

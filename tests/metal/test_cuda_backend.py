"""What only the cuda backend does: its CUDA C++, NVRTC's messages, streams, arguments, names."""

from __future__ import annotations

import json
import struct
import sys

import pytest
import torch
from expecttest import TestCase

from mpskit.errors import MpskitError
from mpskit.metal import LaunchError, cache, compile_shader
from mpskit.metal.cuda import library, nvrtc
from mpskit.metal.cuda.emit import read_description, translation_unit
from mpskit.metal.frontend.kernels import read_kernels
from mpskit.metal.frontend.structure import Program
from mpskit.metal.frontend.tokens import Source
from mpskit.verify.op_under_test import OpUnderTest
from mpskit.verify.plan import Kernel

on_a_gpu = pytest.mark.requires_cuda("test_launching checks the same rules on the cpu")

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void fill(device float* out, constant float& value, uint i [[thread_position_in_grid]]) {
  out[i] = value;
}
struct Table { float values[1000]; };
kernel void look_up(device float* out, constant Table& table,
                    uint i [[thread_position_in_grid]]) {
  out[i] = table.values[i];
}
kernel void count(device atomic_uint& n) {
  atomic_fetch_add_explicit(&n, 1, memory_order_relaxed);
}
kernel void rows(device uchar* out, uint3 group [[threadgroup_position_in_grid]]) {
  out[group.y] += 1;
  out[group.z] += 1;
}
"""


class TestTranslationUnit(TestCase):
    def test_entry_points_and_table(self):
        source = Source("""
            namespace a { template <typename T> kernel void scale(
                device T* x, constant T& by, threadgroup float* t [[threadgroup(1)]],
                uint i [[thread_position_in_grid]]) {
              threadgroup T tile[8], one;
              tile[i] = x[i] * by; } }
            template [[host_name("scale_float")]] kernel void a::scale<float>(
                device float*, constant float&, threadgroup float*, uint);
            kernel void sum(constant int* x, device int& out) { out = x[0]; }
        """)
        program = Program(source)
        unit = translation_unit(program, read_kernels(program))
        self.assertIn("__shared__ T tile[ 8 ], one;", unit)
        self.assertExpectedInline(
            unit[: unit.index('#include "mpskit_shim.h"')],
            """\
#define MPSKIT_TARGET_CUDA 1
#define MPSKIT_BY_VALUE_LIMIT 1024
#define MPSKIT_SWIZZLES_VEC2(S2, S3, S4)
#define MPSKIT_SWIZZLES_VEC3(S2, S3, S4)
#define MPSKIT_SWIZZLES_VEC4(S2, S3, S4)
namespace mpskit_program { namespace a {} }
namespace a = mpskit_program::a;
namespace mpskit_program { namespace metal {} }
namespace metal = mpskit_program::metal;
namespace mpskit_program { namespace mpskit {} }
namespace mpskit = mpskit_program::mpskit;
namespace mpskit_program {
""",
        )
        entries = unit[unit.index("# 1 ") : unit.index('extern "C" __device__ char')]
        self.assertExpectedInline(
            entries,
            """\
# 1 "mpskit entry points"
namespace mpskit::cuda {

static constexpr auto kernel_0 = ::mpskit_program::mpskit_kernel_0;
using Function_0 = decltype(kernel_0);
extern "C" __global__ void __launch_bounds__(1024) metal_0_scale_float(
    const __grid_constant__ Dispatch dispatch,
    entry::PointeeOf<0, Function_0>* b0,
    const __grid_constant__ ConstantOf<1, Function_0> b1,
    unsigned t1) {
  const Thread thread = this_thread(dispatch);
  if (!exists(dispatch, thread)) return;
  kernel_0(
      b0,
      b1.get(),
      threadgroup_buffer<2, Function_0>(t1),
      builtins::thread_position_in_grid(thread));
}

static constexpr auto kernel_1 = &::mpskit_program::sum;
using Function_1 = decltype(kernel_1);
extern "C" __global__ void __launch_bounds__(1024) metal_1_sum(
    const __grid_constant__ Dispatch dispatch,
    entry::PointeeOf<0, Function_1>* __restrict__ b0,
    entry::PointeeOf<1, Function_1>* b1) {
  const Thread thread = this_thread(dispatch);
  if (!exists(dispatch, thread)) return;
  kernel_1(
      b0,
      *b1);
}

extern "C" __device__ abi::Pointee mpskit_pointees[] = {
    entry::pointee<0, Function_0>(),
    entry::pointee<1, Function_0>(),
    entry::pointee<2, Function_0>(),
    entry::pointee<0, Function_1>(),
    entry::pointee<1, Function_1>(),
    {}};
""",
        )

    def test_constants_with_values_are_known_at_compile_time(self):
        program = Program(
            Source("""
                constant float one = 1;
                constant static constexpr float two = 2;
                namespace a::b { constant float2 pair{one, one + 1}; }
                namespace a::b { constant int* f(int); }
                void g(constant int& x) { constant int y = x; }
            """)
        )
        unit = translation_unit(program, read_kernels(program))
        body = unit[unit.index('"launch.h"') : unit.index("# 1 ")].splitlines()
        self.assertExpectedInline(
            "\n".join(line.strip() for line in body[1:]),
            """\


const constexpr float one = 1;
const static constexpr float two = 2;
namespace a::b { const constexpr float2 pair = ::mpskit::braced<float2>(one, one + 1); }
namespace a::b { const int* f(int); }
void g(const int& x) { const int y = x; }
""",
        )

    def test_the_description_reads_back(self):
        program = Program(Source("kernel void f(constant int& n, device int* x [[buffer(4)]]) {}"))
        unit = translation_unit(program, read_kernels(program))
        text = unit.split("mpskit_description[] = ")[1].split(";\n")[0]
        (kernel,) = read_description(json.loads(text))
        self.assertEqual((kernel.name, kernel.symbol, kernel.max_threads), ("f", "metal_0_f", 1024))
        self.assertEqual(
            [(p.name, p.index, p.is_constant_reference) for p in kernel.parameters],
            [("n", 0, True), ("x", 4, False)],
        )


def test_nvrtcs_messages_become_diagnostics():
    log = """\
6: NVRTC_ERROR_COMPILATION, compilation log:

k.metal(5): error: no instance of overloaded function "mpskit_program::metal::max" matches
            argument types are: (float *, const float)
      x = max(out, value);
          ^
          detected during instantiation of "void f<T>()"

mpskit(7): warning #177-D: variable "x" was declared but never referenced
"""
    first, second = nvrtc.read_diagnostics(log)
    assert str(first) == (
        'k.metal:5:9: error: no instance of overloaded function "metal::max" matches argument '
        "types are: (float *, const float)"
    )
    assert (second.severity, second.location.line) == ("warning", 7)


def test_no_gpu_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(MpskitError, match="needs an NVIDIA GPU") as caught:
        compile_shader(SOURCE, backend="cuda")
    assert "backend='cpu'" in (caught.value.hint or "")


def test_no_cuda_core_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    nvrtc.version.cache_clear()
    try:
        with pytest.raises(MpskitError, match="needs the packages cuda-core") as caught:
            nvrtc.compile_to_cubin("", arch="sm_90")
        assert "pip install 'mpskit[cuda]'" in (caught.value.hint or "")
    finally:
        nvrtc.version.cache_clear()


def test_places_of_threadgroup_arguments():
    assert library._places([]) == ([], 0)
    assert library._places([4, 0, 20, 8]) == ([0, 16, 16, 48], 56)


@pytest.fixture(scope="module")
def kernels():
    return compile_shader(SOURCE, backend="cuda")


@on_a_gpu
def test_a_launch_is_ordered_by_torchs_current_stream(kernels):
    x = torch.zeros(1 << 24, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x += 1
        kernels.fill(x, 2.0)
        y = x + 1
    stream.synchronize()
    assert y.eq(3).all()


@on_a_gpu
def test_a_launch_can_be_captured_in_a_graph(kernels):
    x = torch.zeros(100, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernels.fill(x, 2.0)
    assert x.eq(0).all()
    graph.replay()
    assert x.eq(2).all()


@on_a_gpu
def test_constants_by_value_by_address_and_from_a_tensor(kernels):
    out = torch.zeros(1000, device="cuda")
    table = torch.arange(1000, dtype=torch.float32)
    kernels.look_up(out, struct.pack("<1000f", *table.tolist()))
    assert torch.equal(out.cpu(), table)
    kernels.look_up(out, table.neg().cuda())
    assert torch.equal(out.cpu(), -table)
    kernels.fill(out, torch.tensor([1.0, 5.0], device="cuda")[1:])
    assert out.eq(5).all()
    with pytest.raises(LaunchError, match=r"argument 1 \('value'\) has 0 bytes"):
        kernels.fill(out, torch.tensor([1.0], device="cuda")[1:])


@on_a_gpu
def test_references_to_device_memory(kernels):
    n = torch.zeros(1, dtype=torch.int, device="cuda")
    kernels.count(n, threads=100_000, group_size=96)
    assert n.item() == 100_000


@on_a_gpu
def test_grids_reach_beyond_cudas_limits(kernels):
    for grid in ((1, 200_000), (1, 1, 200_000)):
        out = torch.zeros(200_000, dtype=torch.uint8, device="cuda")
        kernels.rows(out, threads=grid, group_size=(1,) * len(grid))
        assert out[1:].eq(1).all()
    with pytest.raises(LaunchError, match="4294836225 threadgroups"):
        kernels.rows(out, threads=(65535, 65535), group_size=(1, 1))


@on_a_gpu
def test_names_of_cuda_are_the_programs_to_use():
    lib = compile_shader(
        """
        #include <metal_stdlib>
        using namespace metal;
        struct dim3 { int a; };
        int atomicAdd(int x) { return 2 * x; }
        namespace tools {
          constant int warpSize = 4;
          template <typename T> T clock(T x) { return ::metal::max(x, T(warpSize)); }
        }
        kernel void exp(device int* out, uint threadIdx [[thread_position_in_grid]]) {
          dim3 blockDim{3};
          int4 v(blockDim.a, atomicAdd(2), ::tools::clock(1), min(7, max(3, 5)));
          out[threadIdx] = v[threadIdx];
        }
        """,
        backend="cuda",
    )
    out = torch.zeros(4, dtype=torch.int, device="cuda")
    lib.exp(out)
    assert out.tolist() == [3, 4, 4, 5]


@on_a_gpu
def test_a_compiled_library_is_taken_from_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("MPSKIT_CACHE_DIR", str(tmp_path))
    cache.directory.cache_clear()
    try:
        compile_shader(SOURCE, backend="cuda")
        monkeypatch.setattr(nvrtc, "compile_to_cubin", None)
        out = torch.zeros(3, device="cuda")
        compile_shader(SOURCE, backend="cuda").fill(out, 1.0)
        assert out.tolist() == [1, 1, 1]
    finally:
        cache.directory.cache_clear()


@on_a_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kernel", list(Kernel))
@pytest.mark.parametrize(
    "shape, dim", [((64, 1000), 1), ((4, 499, 46), 2), ((3, 150, 33), 1), ((2, 5001), 1)]
)
def test_log_softmax_on_every_kernel(shape, dim, kernel, dtype):
    x = torch.randn(shape, device="cuda", generator=torch.Generator("cuda").manual_seed(1))
    x = (4 * x).to(dtype)
    with OpUnderTest(backend="cuda", kernel=kernel) as op:
        out = torch.log_softmax(x, dim)
    op.require_launches()
    exact = torch.log_softmax(x.double(), dim)
    # The result is rounded once to its dtype; what comes before it is computed in float.
    bound = exact.abs() * torch.finfo(dtype).eps * 0.51 + 2e-6
    assert (out.double() - exact).abs().le(bound).all()

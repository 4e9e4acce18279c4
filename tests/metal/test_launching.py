"""Kernels launched on each backend, from outside: values, grids, waiting, errors."""

from __future__ import annotations

import struct
import threading
from pathlib import Path

import pytest
import torch

from mpskit.errors import MpskitError
from mpskit.metal import CompileError, LaunchError, compile_shader

ARGUMENTS = """
#include <metal_stdlib>
using namespace metal;
kernel void fill(device float* out, constant float& value, uint i [[thread_position_in_grid]]) {
  out[i] = value;
}
kernel void copy_half(device half* out, constant half& value) { out[0] = value; }
kernel void copy_int(device int* out, constant int& value) { out[0] = value; }
kernel void copy_long(device long* out, constant long& value) { out[0] = value; }
kernel void sum(device long* out, constant long* values, constant uint& n) {
  for (uint i = 0; i < n; ++i) out[0] += values[i];
}
struct Params { float scale; int shift; };
kernel void scaled(device float* x, constant Params& p, uint i [[thread_position_in_grid]]) {
  x[i] = x[i] * p.scale + p.shift;
}
kernel void swapped(device float* b [[buffer(1)]], device float* a [[buffer(0)]]) { b[0] = a[0]; }
kernel void scratch(device int* out, threadgroup int* t [[threadgroup(0)]],
                    uint i [[thread_index_in_threadgroup]]) {
  t[i] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = t[31 - i];
}
[[max_total_threads_per_threadgroup(64)]] kernel void small(device int* out) {}
"""


@pytest.fixture(autouse=True)
def tensors_on_the_device(backend):
    with torch.device(backend):
        yield


@pytest.fixture(scope="module")
def kernels(backend):
    return compile_shader(ARGUMENTS, backend=backend)


def test_scalars_and_default_grid(kernels):
    out = torch.zeros(5)
    kernels.fill(out, 3.25)
    assert out.tolist() == [3.25] * 5


def test_a_tensor_gives_its_storage_from_its_offset_on(kernels):
    storage = torch.zeros(4, 6)
    kernels.fill(storage[1, 2:], 1.0, threads=3)
    assert storage.flatten().nonzero().flatten().tolist() == [8, 9, 10]
    transposed = torch.zeros(2, 3).t()
    kernels.fill(transposed, 2.0, threads=2)
    assert transposed.t().tolist() == [[2, 2, 0], [0, 0, 0]]


def test_casts(kernels):
    half = torch.zeros(1, dtype=torch.half)
    kernels.copy_half(half, 0.1, arg_casts="fp16")
    assert half.item() == torch.tensor(0.1, dtype=torch.half).item()
    number = torch.zeros(1, dtype=torch.int)
    kernels.copy_int(number, 2**31 + 5, arg_casts={1: "int32"})
    assert number.item() == -(2**31) + 5
    long = torch.zeros(1, dtype=torch.long)
    kernels.copy_long(long, -(2**40))
    assert long.item() == -(2**40)


def test_tuples_and_bytes(kernels):
    total = torch.zeros(1, dtype=torch.long)
    kernels.sum(total, (1, 20, 300), 3, threads=1)
    assert total.item() == 321
    x = torch.tensor([1.0, 2.0])
    kernels.scaled(x, struct.pack("<fi", 0.5, 10))
    assert x.tolist() == [10.5, 11.0]


def test_a_tuple_with_tensors_is_a_struct_that_points_to_them(compile_shader, backend):
    lib = compile_shader("""
        struct Args {
          device float* out;
          uint shift;
          device const float* in;
          float scale;
        };
        kernel void scale(constant Args& args, uint i [[thread_position_in_grid]]) {
          args.out[i + args.shift] = args.in[i] * args.scale;
        }""")
    x, out = torch.arange(4.0, device=backend), torch.zeros(6, device=backend)
    lib.scale((out, 2, x, 0.5), threads=4, arg_casts="int32")
    assert out.tolist() == [0, 0, 0, 0.5, 1, 1.5]


def test_buffers_by_index_and_threadgroup_arguments(kernels):
    a, b = torch.tensor([7.0]), torch.tensor([0.0])
    kernels.swapped(a, b)
    assert b.item() == 7
    out = torch.zeros(32, dtype=torch.int)
    kernels.scratch(out, threadgroup_lengths={0: 128})
    assert out.tolist() == list(range(31, -1, -1))


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda k, x: k.fill(x),
            "fill was called with 1 arguments; nothing was given for buffer 1",
        ),
        (lambda k, x: k.fill(x, 3), "argument 1 ('value') is sent as int64, the kernel reads"),
        (lambda k, x: k.copy_half(x, 0.5), "argument 1 ('value') is sent as float32"),
        (lambda k, x: k.copy_int(x, 0.5), "is sent as float32, the kernel reads integer of 4"),
        (lambda k, x: k.copy_long(x, 1, arg_casts="int8"), "sent as int8, the kernel reads"),
        (lambda k, x: k.scaled(x, b"1234"), "is sent as 4 bytes, the kernel reads a struct of 8"),
        (lambda k, x: k.fill(x, 1.0, arg_casts="fp8"), "there is no cast 'fp8'"),
        (lambda k, x: k.fill(x, "1"), "Argument 1 is of type str"),
        (lambda k, x: k.sum(x, (), 0), "Argument 1 is an empty sequence"),
        (lambda k, x: k.fill(1.0, 1.0), "the number of threads is not known"),
        (lambda k, x: k.fill(x, 1.0, threads=(4, 4), group_size=4), "threads has 2 dimensions"),
        (lambda k, x: k.fill(x, 1.0, threads=(1, 1, 1, 1)), "threads has 4 dimensions"),
        (lambda k, x: k.fill(x, 1.0, threads=-1), "a grid of (-1,) threads"),
        (lambda k, x: k.fill(x, 1.0, group_size=1025), "a threadgroup of 1025 threads"),
        (lambda k, x: k.small(x, group_size=65), "It takes 1 to 64 threads"),
        (lambda k, x: k.scratch(x), "Pass threadgroup_lengths={0: bytes}"),
        (lambda k, x: k.scratch(x, threadgroup_lengths={0: 40000}), "40000 bytes are needed"),
        (lambda k, x: k.fill(x.to("meta"), 1.0), "argument 0 is on meta"),
    ],
)
def test_a_wrong_call_is_refused(kernels, call, message):
    with pytest.raises(LaunchError) as caught:
        call(kernels, torch.zeros(4))
    assert message in str(caught.value)


def test_an_unknown_kernel_is_an_attribute_error(kernels):
    with pytest.raises(AttributeError, match=r"no kernel 'fil'. Did you mean fill"):
        _ = kernels.fil
    assert "scaled" in dir(kernels)


POSITIONS = """
kernel void k(device uint* out,
    uint3 g [[thread_position_in_grid]], ushort3 t [[thread_position_in_threadgroup]],
    uint3 tg [[threadgroup_position_in_grid]], uint3 size [[threads_per_threadgroup]],
    uint2 full [[dispatch_threads_per_threadgroup]], uint3 grid [[threads_per_grid]],
    uint3 groups [[threadgroups_per_grid]], uint index [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]],
    uint sgs [[simdgroups_per_threadgroup]], uint width [[threads_per_simdgroup]]) {
  device uint* row = out + 20 * (g.x + grid.x * (g.y + grid.y * g.z));
  uint values[20] = {t.x, t.y, t.z, tg.x, tg.y, tg.z, size.x, size.y, size.z, full.x, full.y,
                     grid.x, grid.y, groups.x, groups.y, index, lane, sg, sgs, width};
  for (uint i = 0; i < 20; ++i) row[i] = values[i];
}
"""


@pytest.mark.parametrize(
    "grid, group", [((70, 5, 3), (16, 4, 2)), ((33,), (32,)), ((3, 7), (8, 8))]
)
def test_positions(backend, grid, group):
    lib = compile_shader(POSITIONS, backend=backend)
    shape = [*grid, 1, 1][:3]
    full = [*group, 1, 1][:3]
    out = torch.zeros(*reversed(shape), 20, dtype=torch.int)
    lib.k(out, threads=grid, group_size=group)
    groups = [-(-s // f) for s, f in zip(shape, full, strict=True)]
    for z in range(shape[2]):
        for y in range(shape[1]):
            for x in range(shape[0]):
                at = [c % f for c, f in zip((x, y, z), full, strict=True)]
                tg = [c // f for c, f in zip((x, y, z), full, strict=True)]
                size = [min(f, s - g * f) for f, s, g in zip(full, shape, tg, strict=True)]
                index = at[0] + size[0] * (at[1] + size[1] * at[2])
                expected = [*at, *tg, *size, *full[:2], *shape[:2], *groups[:2]]
                expected += [
                    index,
                    index % 32,
                    index // 32,
                    -(-size[0] * size[1] * size[2] // 32),
                    32,
                ]
                assert out[z, y, x].tolist() == expected


def test_barriers_order_threadgroup_memory(backend):
    source = """
        #include <metal_stdlib>
        using namespace metal;
        kernel void scan(device int* x, uint i [[thread_position_in_threadgroup]],
                         uint g [[threadgroup_position_in_grid]],
                         uint n [[threads_per_threadgroup]]) {
          threadgroup int a[1024], b[1024];
          a[i] = x[g * n + i];
          for (uint step = 1; step < n; step *= 2) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
            b[i] = a[i] + (i >= step ? a[i - step] : 0);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            a[i] = b[i];
          }
          x[g * n + i] = a[i];
        }
    """
    x = torch.randint(-100, 100, (50, 1024), dtype=torch.int)
    expected = x.cumsum(1)
    compile_shader(source, backend=backend).scan(x, threads=x.numel(), group_size=1024)
    assert torch.equal(x, expected.int())


SIMD = """
#include <metal_stdlib>
using namespace metal;
kernel void early_return(device int* out, constant uint& n, uint i [[thread_position_in_grid]]) {
  if (i >= n) return;
  out[i] = simd_sum(1);
}
kernel void branches(device int* out, uint i [[thread_position_in_grid]]) {
  int sum = 0;
  if (i % 3 == 0) {
    sum = simd_sum(int(i));
  } else {
    sum = -simd_max(int(i));
  }
  out[i] = 1000 * simd_sum(1) + sum;
}
kernel void loops(device int* out, uint i [[thread_position_in_grid]]) {
  int taken = 0;
  for (uint round = 0; round <= i % 4; ++round) {
    taken += simd_sum(1);
  }
  out[i] = 1000 * simd_sum(1) + taken;
}
kernel void early_return_before_barrier(device int* out, uint i [[thread_position_in_grid]]) {
  if (i >= 40) return;
  threadgroup_barrier(mem_flags::mem_none);
  out[i] = 1;
}
kernel void beyond_the_active(device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = simd_shuffle(float(i), ushort(8));
}
kernel void sparse(device int* out, constant uint& mask, uint i [[thread_position_in_grid]]) {
  if (mask >> i & 1) out[i] = simd_sum(int(i)) + 1000 * quad_sum(int(i));
}
kernel void too_much(device float* out, threadgroup float* more [[threadgroup(0)]],
                     uint i [[thread_position_in_threadgroup]]) {
  threadgroup float t[8188];
  t[8187 - i] = out[i];
  more[0] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = t[8000 + i % 100];
}
"""


def test_only_active_lanes_take_part(backend):
    lib = compile_shader(SIMD, backend=backend)
    out = torch.zeros(64, dtype=torch.int)
    lib.early_return(out, 40, threads=64, group_size=64)
    assert out.tolist() == [32] * 32 + [8] * 8 + [0] * 24


def test_divergent_lanes_meet_again(backend):
    lib = compile_shader(SIMD, backend=backend)
    out = torch.zeros(32, dtype=torch.int)
    lib.branches(out)
    multiples = sum(range(0, 32, 3))
    assert out.tolist() == [32000 + (multiples if i % 3 == 0 else -31) for i in range(32)]
    lib.loops(out)
    rounds = [32, 24, 16, 8]
    assert out.tolist() == [32000 + sum(rounds[: i % 4 + 1]) for i in range(32)]


def test_what_inactive_lanes_would_give_is_poison(backend):
    out = torch.zeros(40)
    compile_shader(SIMD, backend=backend).beyond_the_active(out, group_size=40)
    assert out[:32].tolist() == [8.0] * 32
    assert out[32:].isnan().all()


@pytest.mark.parametrize("mask", [0x1, 0x80000000, 0x3FFF, 0xF0F0_0F0F, 0x5555_5555, 0xFFFF_FFFF])
def test_any_set_of_lanes_can_be_summed(backend, mask):
    out = torch.zeros(32, dtype=torch.int)
    compile_shader(SIMD, backend=backend).sparse(out, mask)
    lanes = [i for i in range(32) if mask >> i & 1]
    quads = [sum(j for j in lanes if j // 4 == i // 4) for i in range(32)]
    assert out.tolist() == [sum(lanes) + 1000 * quads[i] if i in lanes else 0 for i in range(32)]


def test_threads_that_returned_do_not_block_a_barrier(backend):
    out = torch.zeros(64, dtype=torch.int)
    compile_shader(SIMD, backend=backend).early_return_before_barrier(out, group_size=64)
    assert out.sum() == 40


def test_many_python_threads(backend):
    lib = compile_shader(SIMD, backend=backend)

    def work(n: int) -> bool:
        out = torch.zeros(4096, dtype=torch.int, device=backend)
        for _ in range(20):
            lib.early_return(out, n, threads=4096, group_size=128)
        return out.sum().item() == 32 * n

    results: list[bool] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(work(n))) for n in (32, 512, 1024, 4096)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


def test_running_out_of_threadgroup_memory_is_an_error_and_no_crash(backend):
    lib = compile_shader(SIMD, backend=backend)
    for _ in range(3):
        with pytest.raises(LaunchError, match="32784 bytes are needed, 32768 is the most"):
            lib.too_much(torch.zeros(4096), group_size=1024, threadgroup_lengths={0: 32})
    out = torch.zeros(64, dtype=torch.int)
    lib.early_return(out, 64, threads=64, group_size=64)
    assert out.tolist() == [32] * 64


def test_a_compile_error_names_the_users_line(backend):
    with pytest.raises(CompileError) as caught:
        source = "\nkernel void f(device float* x) {\n  x[0] = undeclared;\n}\n"
        compile_shader(source, backend=backend)
    (first, *_) = caught.value.diagnostics
    where = first.location
    assert (where.file, where.line, where.column) == ("program_source", 3, 10)
    assert "undeclared" in first.message


def test_a_missing_include_names_it(backend):
    with pytest.raises(CompileError, match=r"program_source:2:\d+: error: .*no_such\.h"):
        compile_shader("\n#include <no_such.h>\n", backend=backend)


def test_files_and_include_dirs(backend, tmp_path: Path):
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "value.h").write_text("constant int value = 42;\n")
    (tmp_path / "local.h").write_text("constant int bonus = 8;\n")
    kernel = tmp_path / "k.metal"
    kernel.write_text(
        '#include <value.h>\n#include "local.h"\n'
        "kernel void k(device int* out) { out[0] = value + bonus; }\n"
    )
    out = torch.zeros(1, dtype=torch.int)
    compile_shader(kernel, backend=backend, include_dirs=[tmp_path / "inc"]).k(out)
    assert out.item() == 50
    with pytest.raises(MpskitError, match="cannot be read"):
        compile_shader(tmp_path / "none.metal", backend=backend)

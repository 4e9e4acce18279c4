"""Kernels launched on the cpu backend, from outside: values, grids, waiting, errors."""

from __future__ import annotations

import multiprocessing
import os
import struct
import threading
from pathlib import Path

import pytest
import torch

from mpskit.errors import MpskitError
from mpskit.metal import CompileError, LaunchError, cache, compile_shader, host_compiler

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


@pytest.fixture(scope="module")
def kernels():
    return compile_shader(ARGUMENTS)


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
def test_positions(grid, group):
    lib = compile_shader(POSITIONS)
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


def test_barriers_order_threadgroup_memory():
    lib = compile_shader("""
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
    """)
    x = torch.randint(-100, 100, (50, 1024), dtype=torch.int)
    expected = x.cumsum(1)
    lib.scan(x, threads=x.numel(), group_size=1024)
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
kernel void undefined(device float* out, uint i [[thread_position_in_grid]]) {
  threadgroup float t[32];
  out[i] = i < 32 ? t[i] : simd_shuffle(float(i), ushort(31));
}
kernel void too_much(device float* out) {
  threadgroup float t[8193];
  t[0] = out[0];
  out[0] = t[0];
}
"""


def test_only_active_lanes_take_part():
    lib = compile_shader(SIMD)
    out = torch.zeros(64, dtype=torch.int)
    lib.early_return(out, 40, threads=64, group_size=64)
    assert out.tolist() == [32] * 32 + [8] * 8 + [0] * 24


def test_divergent_lanes_meet_again():
    lib = compile_shader(SIMD)
    out = torch.zeros(32, dtype=torch.int)
    lib.branches(out)
    multiples = sum(range(0, 32, 3))
    assert out.tolist() == [32000 + (multiples if i % 3 == 0 else -31) for i in range(32)]
    lib.loops(out)
    rounds = [32, 24, 16, 8]
    assert out.tolist() == [32000 + sum(rounds[: i % 4 + 1]) for i in range(32)]


def test_threads_that_returned_do_not_block_a_barrier():
    out = torch.zeros(64, dtype=torch.int)
    compile_shader(SIMD).early_return_before_barrier(out, group_size=64)
    assert out.sum() == 40


def test_undefined_values_are_poison():
    out = torch.zeros(40)
    compile_shader(SIMD).undefined(out, group_size=40)
    assert out.isnan().all()


def test_running_out_of_threadgroup_memory_is_an_error_and_no_crash():
    lib = compile_shader(SIMD)
    for _ in range(3):
        with pytest.raises(LaunchError, match="32772 bytes are needed, 32768 is the most"):
            lib.too_much(torch.zeros(4096), group_size=1024)
    out = torch.zeros(64, dtype=torch.int)
    lib.early_return(out, 64, threads=64, group_size=64)
    assert out.tolist() == [32] * 64


def test_many_python_threads_and_a_fork():
    lib = compile_shader(SIMD)

    def work(n: int) -> bool:
        out = torch.zeros(4096, dtype=torch.int)
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
    if hasattr(os, "fork"):
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.apply_async(work_in_child).get(60)


def work_in_child() -> bool:
    out = torch.zeros(4096, dtype=torch.int)
    compile_shader(SIMD).early_return(out, 4096, threads=4096, group_size=128)
    return bool(out.sum().item() == 32 * 4096)


def test_a_compile_error_names_the_users_line():
    with pytest.raises(CompileError) as caught:
        compile_shader("\nkernel void f(device float* x) {\n  x[0] = undeclared;\n}\n")
    (first, *_) = caught.value.diagnostics
    assert (first.location.file, first.location.line) == ("program_source", 3)
    assert "undeclared" in first.message


def test_a_missing_include_names_it():
    with pytest.raises(CompileError, match=r"program_source:2:\d+: error: .*no_such\.h"):
        compile_shader("\n#include <no_such.h>\n")


def test_files_and_include_dirs(tmp_path: Path):
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "value.h").write_text("constant int value = 42;\n")
    (tmp_path / "local.h").write_text("constant int bonus = 8;\n")
    kernel = tmp_path / "k.metal"
    kernel.write_text(
        '#include <value.h>\n#include "local.h"\n'
        "kernel void k(device int* out) { out[0] = value + bonus; }\n"
    )
    out = torch.zeros(1, dtype=torch.int)
    compile_shader(kernel, include_dirs=[tmp_path / "inc"]).k(out)
    assert out.item() == 50
    with pytest.raises(MpskitError, match="cannot be read"):
        compile_shader(tmp_path / "none.metal")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSKIT_CACHE_DIR", str(tmp_path / "cache"))
    cache.directory.cache_clear()
    yield tmp_path / "cache"
    cache.directory.cache_clear()


def test_a_damaged_cache_entry_is_made_again(own_cache):
    built = []

    def build(file: Path) -> None:
        built.append(file)
        file.write_text("sound")

    file = cache.entry("one", build)
    assert cache.entry("one", build) == file and len(built) == 1
    for damage in (
        lambda: file.write_text("soun"),
        lambda: file.unlink(),
        lambda: cache.digest_of(file).unlink(),
        lambda: cache.digest_of(file).write_bytes(b"\xff"),
    ):
        damage()
        assert cache.entry("one", build).read_text() == "sound"
    assert len(built) == 5


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("MPSKIT_CACHE_DIR", str(blocker / "cache"))
    cache.directory.cache_clear()
    try:
        assert cache.entry("one", lambda file: file.write_text("x") and None).read_text() == "x"
    finally:
        cache.directory.cache_clear()


def test_no_compiler_is_one_clear_error(monkeypatch, own_cache):
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    host_compiler.find_compiler.cache_clear()
    try:
        with pytest.raises(MpskitError) as caught:
            compile_shader("kernel void never_compiled(device int* x) {}")
        assert "No C++ compiler was found" in caught.value.message
        assert "pip install 'mpskit[compiler]'" in (caught.value.hint or "")
    finally:
        host_compiler.find_compiler.cache_clear()


def test_a_compiler_that_fails_is_said_to(monkeypatch, own_cache, tmp_path):
    fake = tmp_path / "c++"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo fake 1.0 && exit 0\necho boom >&2\nexit 3\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    host_compiler.find_compiler.cache_clear()
    try:
        with pytest.raises(MpskitError, match="boom"):
            compile_shader("kernel void never_compiled(device int* x) {}")
    finally:
        host_compiler.find_compiler.cache_clear()


def test_an_unknown_backend_is_refused():
    with pytest.raises(MpskitError, match="There is no backend 'opencl'"):
        compile_shader("", backend="opencl")


@pytest.mark.requires_mps("the launch rules are the ones that test_cpu_backend checks on the cpu")
def test_the_same_calls_on_a_macs_gpu():
    lib = compile_shader(
        "kernel void fill(device float* out, constant float& value,"
        " uint i [[thread_position_in_grid]]) { out[i] = value; }"
        "struct Params { float scale; int shift; };"
        "kernel void scaled(device float* x, constant Params& p,"
        " uint i [[thread_position_in_grid]]) { x[i] = x[i] * p.scale + p.shift; }",
        backend="mps",
    )
    x = torch.zeros(5, device="mps")
    lib.fill(x, 3.0)
    lib.scaled(x, struct.pack("<fi", 0.5, 10))
    assert x.cpu().tolist() == [11.5] * 5

"""Chapter 4 and section 6.9.1: address spaces, and what barriers order."""

from __future__ import annotations

import pytest
import torch
from msl_evaluation import HEADER

pytestmark = pytest.mark.conformance("4 Address spaces and barriers")

ADDRESS_SPACES = """
constant float samples[] = {1.0f, 2.0f, 3.0f, 4.0f};
constant int3 offsets[2] = {int3(1, 2, 3), int3(4, 5, 6)};
constant constexpr uint count_of_samples = sizeof(samples) / sizeof(samples[0]);
struct Pair { float a; int b; };
constant Pair pairs[] = {{0.5f, 1}, {1.5f, 2}};

float total(constant float* x, uint n) {
  float sum = 0;
  for (uint i = 0; i < n; ++i) sum += x[i];
  return sum;
}
float total(device const float* x, uint n) {
  float sum = 0;
  for (uint i = 0; i < n; ++i) sum += 10 * x[i];
  return sum;
}
float total(threadgroup float* x, uint n) {
  float sum = 0;
  for (uint i = 0; i < n; ++i) sum += 100 * x[i];
  return sum;
}
void twice(thread float& x) { x *= 2; }
void twice(device float& x) { x *= 2; }
void twice(threadgroup float& x) { x *= 2; }

kernel void tables(device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = samples[i % count_of_samples] + 10 * offsets[i & 1][i % 3] + 100 * pairs[i & 1].b;
}
kernel void totals(device float* out, device const float* x, constant float* y,
                   uint t [[thread_position_in_threadgroup]]) {
  threadgroup float z[4];
  if (t < 4) z[t] = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t > 0) return;
  out[0] = total(x, 3);
  out[1] = total(y, 3);
  out[2] = total(z, 4);
  out[3] = total(samples, 4);
}
kernel void references(device float* out, constant float& scale, constant Pair& pair,
                       uint i [[thread_position_in_grid]]) {
  threadgroup float shared[32];
  thread float own = float(i);
  shared[i] = own;
  twice(own);
  twice(out[i]);
  twice(shared[i]);
  thread float* at = &own;
  *at += scale;
  out[i] += own + shared[i] + pair.a * pair.b;
}
kernel void private_arrays(device int* out, uint i [[thread_position_in_grid]]) {
  int own[16];
  for (int k = 0; k < 16; ++k) own[k] = int(i) * k;
  for (int k = 0; k < 16; k += 2) {
    const int other = own[k];
    own[k] = own[15 - k];
    own[15 - k] = other;
  }
  int sum = 0;
  for (int k = 0; k < 16; ++k) sum += own[k] * (k + 1);
  out[i] = sum;
}
"""
BARRIERS = """
kernel void reverse(device int* x, uint i [[thread_position_in_grid]],
                    uint t [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  threadgroup int scratch[256];
  scratch[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = scratch[n - 1 - t];
}
kernel void reverse_in_device_memory(device int* x, device int* scratch,
    uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]],
    uint n [[threads_per_threadgroup]]) {
  scratch[i] = x[i];
  threadgroup_barrier(mem_flags::mem_device);
  x[i] = scratch[i - t + n - 1 - t];
}
kernel void scan(device int* x, uint i [[thread_position_in_grid]],
                 uint t [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  threadgroup int a[256], b[256];
  threadgroup int* from = a;
  threadgroup int* to = b;
  from[t] = x[i];
  for (uint step = 1; step < n; step *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    to[t] = from[t] + (t >= step ? from[t - step] : 0);
    threadgroup int* swapped = from; from = to; to = swapped;
  }
  x[i] = from[t];
}
kernel void by_simdgroup(device int* x, uint i [[thread_position_in_grid]],
                         uint t [[thread_position_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
  threadgroup int scratch[256];
  scratch[t] = x[i];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = scratch[t - lane + 31 - lane];
}
kernel void some_groups_only(device int* x, uint i [[thread_position_in_grid]],
                             uint t [[thread_position_in_threadgroup]],
                             uint g [[threadgroup_position_in_grid]],
                             uint n [[threads_per_threadgroup]]) {
  threadgroup int scratch[256];
  if (g % 2 == 0) {
    scratch[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[i] = scratch[n - 1 - t];
  } else {
    x[i] = -x[i];
  }
}
kernel void every_flag(device int* x, uint i [[thread_position_in_grid]]) {
  threadgroup_barrier(mem_flags::mem_none);
  threadgroup_barrier(mem_flags::mem_device);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup_barrier(mem_flags::mem_texture);
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  simdgroup_barrier(mem_flags::mem_none);
  simdgroup_barrier(mem_flags::mem_device);
  simdgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  x[i] += 1;
}
struct Record { int a; float b; };
kernel void own_memory(device int* out, uint t [[thread_position_in_threadgroup]],
                       uint g [[threadgroup_position_in_grid]],
                       uint i [[thread_position_in_grid]]) {
  threadgroup int mine;
  threadgroup int3 vectors[4];
  threadgroup Record record;
  threadgroup struct { float b; int a; } unnamed[2];
  if (t == 0) {
    mine = int(g);
    vectors[3] = int3(g);
    record.a = int(g) * 2;
    unnamed[1].a = int(g) * 3;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = mine + vectors[3].z + record.a + unnamed[1].a;
}
"""


@pytest.fixture(scope="module")
def spaces(compile_shader):
    return compile_shader(HEADER + ADDRESS_SPACES)


@pytest.fixture(scope="module")
def barriers(compile_shader):
    return compile_shader(HEADER + BARRIERS)


def test_constant_tables(spaces, count) -> None:
    out = torch.zeros(12)
    spaces.tables(out, threads=12)
    offsets = [[1, 2, 3], [4, 5, 6]]
    assert out.tolist() == [
        1 + i % 4 + 10 * offsets[i & 1][i % 3] + 100 * (1 + (i & 1)) for i in range(12)
    ]
    count(12)


def test_overloads_on_address_spaces(spaces, differs, count) -> None:
    for backend in ("cpu", "cuda"):
        differs(backend, "address spaces are erased, and one of such overloads stands for all")
    out = torch.zeros(4)
    spaces.totals(out, torch.ones(3), torch.ones(3), threads=32, group_size=32)
    assert out.tolist() == [30, 3, 400, 10]
    count(4)


def test_references_and_pointers(spaces, count) -> None:
    out = torch.arange(32.0)
    pair = bytes(torch.tensor([0.5]).numpy()) + bytes(torch.tensor([6], dtype=torch.int).numpy())
    spaces.references(out, 0.25, pair, threads=32, group_size=32)
    assert out.tolist() == [2 * i + 2 * i + 0.25 + 2 * i + 3 for i in range(32)]
    count(32)


def test_private_arrays(spaces, count) -> None:
    out = torch.zeros(64, dtype=torch.int)
    spaces.private_arrays(out, threads=64)
    own = list(range(16))
    for k in range(0, 16, 2):
        own[k], own[15 - k] = own[15 - k], own[k]
    assert out.tolist() == [i * sum(v * (k + 1) for k, v in enumerate(own)) for i in range(64)]
    count(64)


SIZES = [(256, 256), (300, 100), (250, 64), (96, 32), (7, 7)]  # the last groups of some are ragged


def groups(threads: int, size: int) -> list[range]:
    return [range(at, min(at + size, threads)) for at in range(0, threads, size)]


@pytest.mark.parametrize(("threads", "size"), SIZES)
@pytest.mark.parametrize("kernel", ["reverse", "reverse_in_device_memory"])
def test_barriers_order_memory(barriers, count, kernel: str, threads: int, size: int) -> None:
    x = torch.arange(threads, dtype=torch.int)
    extra = [torch.zeros_like(x)] if kernel != "reverse" else []
    getattr(barriers, kernel)(x, *extra, threads=threads, group_size=size)
    assert x.tolist() == [i for group in groups(threads, size) for i in reversed(group)]
    count(threads)


@pytest.mark.parametrize(("threads", "size"), SIZES)
def test_barriers_in_a_loop(barriers, count, threads: int, size: int) -> None:
    x = torch.arange(1, threads + 1, dtype=torch.int)
    barriers.scan(x, threads=threads, group_size=size)
    expected = [
        sum(j + 1 for j in group[: k + 1])
        for group in groups(threads, size)
        for k in range(len(group))
    ]
    assert x.tolist() == expected
    count(threads)


@pytest.mark.parametrize(("threads", "size"), [(256, 256), (128, 64)])
def test_simdgroup_barrier(barriers, count, threads: int, size: int) -> None:
    x = torch.arange(threads, dtype=torch.int)
    barriers.by_simdgroup(x, threads=threads, group_size=size)
    assert x.tolist() == [i for group in groups(threads, 32) for i in reversed(group)]
    count(threads)


@pytest.mark.parametrize(("threads", "size"), SIZES)
def test_barrier_in_some_threadgroups(barriers, count, threads: int, size: int) -> None:
    x = torch.arange(threads, dtype=torch.int)
    barriers.some_groups_only(x, threads=threads, group_size=size)
    expected = [
        i if g % 2 == 0 else -(group.start + group.stop - 1 - i)
        for g, group in enumerate(groups(threads, size))
        for i in reversed(group)
    ]
    assert x.tolist() == expected
    count(threads)


@pytest.mark.parametrize(("threads", "size"), SIZES)
def test_barriers_with_every_flag(barriers, count, threads: int, size: int) -> None:
    x = torch.arange(threads, dtype=torch.int)
    barriers.every_flag(x, threads=threads, group_size=size)
    assert x.tolist() == list(range(1, threads + 1))
    count(threads)


@pytest.mark.parametrize(("threads", "size"), SIZES)
def test_each_threadgroup_has_its_own_memory(barriers, count, threads: int, size: int) -> None:
    out = torch.zeros(threads, dtype=torch.int)
    barriers.own_memory(out, threads=threads, group_size=size)
    assert out.tolist() == [7 * (i // size) for i in range(threads)]
    count(threads)

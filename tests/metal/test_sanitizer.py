"""The sanitizer's interface, and what it must leave alone."""

from __future__ import annotations

import dataclasses
import struct

import pytest
import torch
from expecttest import TestCase

from mpskit.errors import MpskitError
from mpskit.metal import LaunchError, compile_shader
from mpskit.metal.sanitizer import Check, SanitizerError
from mpskit.metal.sanitizer.reports import MAX_REPORTS


def sanitized(source: str):
    return compile_shader(f"#include <metal_stdlib>\nusing namespace metal;\n{source}",
                          sanitize=True)  # fmt: skip


def reports_of(kernel, *args, **options):
    with pytest.raises(SanitizerError) as caught:
        kernel(*args, **options)
    return caught.value.reports


NEIGHBOUR = """
kernel void neighbour(device float* x, uint i [[thread_position_in_grid]]) {
  x[i] += x[i + 1];
}
"""


class ReportsTest(TestCase):
    def test_as_text(self) -> None:
        with self.assertRaises(SanitizerError) as caught:
            sanitized(NEIGHBOUR).neighbour(torch.ones(64), group_size=64)
        self.assertExpectedInline(
            caught.exception.message,
            """\
The sanitizer has 2 reports.
program_source:5: race-in-threadgroup: data race between threads of a threadgroup
  kernel 'neighbour', buffer 'x', element 1
  program_source:5: write by thread (1, 0, 0) of threadgroup (0, 0, 0)
  program_source:5: read by thread (0, 0, 0) of threadgroup (0, 0, 0), before that
program_source:5: out-of-bounds: access outside a buffer or variable
  kernel 'neighbour', buffer 'x', element 64
  program_source:5: read by thread (63, 0, 0) of threadgroup (0, 0, 0)
  it has 64 elements""",
        )

    def test_as_objects(self) -> None:
        race, outside = reports_of(sanitized(NEIGHBOUR).neighbour, torch.ones(64), group_size=64)
        assert race.check is Check.RACE_IN_THREADGROUP
        assert (race.kernel, race.file, race.line) == ("neighbour", "program_source", 5)
        assert (race.variable, race.space, race.index) == ("x", "device", 1)
        assert (race.thread, race.threadgroup) == ((1, 0, 0), (0, 0, 0))
        assert (race.access.kind, race.access.bytes) == ("write", 4)
        assert (race.other.kind, race.other.thread) == ("read", (0, 0, 0))
        assert outside.check is Check.OUT_OF_BOUNDS and outside.other is None
        with pytest.raises(dataclasses.FrozenInstanceError):
            race.line = 6


def test_reports_are_the_same_every_time():
    kernel = sanitized(NEIGHBOUR).neighbour
    first = reports_of(kernel, torch.ones(512), group_size=64)
    for _ in range(3):
        assert reports_of(kernel, torch.ones(512), group_size=64) == first


def test_one_report_for_a_line_and_no_more_than_the_limit():
    lines = "\n".join(f"  x[i + {1000 * k}] = {k};" for k in range(1, 31))
    lib = sanitized(f"""
        kernel void far(device float* x, uint i [[thread_position_in_grid]]) {{
        {lines}
        }}""")
    with pytest.raises(SanitizerError) as caught:
        lib.far(torch.zeros(100), group_size=50)
    assert len(caught.value.reports) == MAX_REPORTS and caught.value.total == 30
    assert len({report.line for report in caught.value.reports}) == MAX_REPORTS
    assert "… and 10 more." in caught.value.message


def test_results_are_those_of_the_plain_kernel_and_reach_views():
    source = """
        kernel void twice(device const float* x, device float* out,
                          uint i [[thread_position_in_grid]]) { out[2 * i] = 2 * x[i]; }"""
    storage = torch.zeros(21)
    sanitized(source).twice(torch.arange(10.0), storage[1:], threads=10)
    assert storage[1::2].tolist() == [2.0 * i for i in range(10)]
    assert storage[0::2].count_nonzero() == 0


def test_results_are_there_when_a_report_is_raised():
    x = torch.ones(64)
    reports_of(sanitized(NEIGHBOUR).neighbour, x, group_size=64)
    assert x[:62].tolist() == [2.0] * 62


def test_tensors_of_one_storage_share_their_memory():
    lib = sanitized("""
        kernel void forward(device const float* from, device float* to,
                            uint i [[thread_position_in_grid]]) { to[i] = from[i]; }""")
    x = torch.arange(65.0)
    (report,) = reports_of(lib.forward, x[:64], x[1:], threads=64, group_size=64)
    assert report.check is Check.RACE_IN_THREADGROUP
    lib.forward(x, x, threads=65, group_size=65)


def test_an_element_ahead_of_a_view_is_outside():
    lib = sanitized("""
        kernel void before(device float* x, uint i [[thread_position_in_grid]]) {
          x[int(i) - 1] = 1;
        }""")
    (report,) = reports_of(lib.before, torch.zeros(9)[1:], threads=8)
    assert (report.check, report.index) == (Check.OUT_OF_BOUNDS, -1)


def test_a_far_index_names_its_buffer():
    lib = sanitized("""
        kernel void far(device float* a, device float* b, device float* c,
                        constant uint& index) { b[index] = 1; }""")
    a, b, c = torch.zeros(8), torch.zeros(8), torch.zeros(8)
    for index in (2**31 - 1, 2**31, 3 * 2**30):
        (report,) = reports_of(lib.far, a, b, c, index, threads=1, arg_casts="int32")
        assert (report.variable, report.index) == ("b", index)
    assert not (a.any() or b.any() or c.any())


POINTERS = """
struct Args { device float* out; device const float* in; };
kernel void copy(constant Args& args, uint i [[thread_position_in_grid]]) {
  args.out[i] = args.in[i];
}
"""


def test_pointers_in_a_struct_are_followed():
    lib = sanitized(POINTERS)
    x, out = torch.arange(8.0), torch.zeros(8)
    lib.copy((out, x), threads=8)
    assert out.equal(x)
    read, write = reports_of(lib.copy, (out, x), threads=9)
    assert (read.variable, read.index, read.access.kind) == ("args[1]", 8, "read")
    assert (write.variable, write.index, write.access.kind) == ("args[0]", 8, "write")


def test_addresses_in_bytes_are_followed_to_the_other_arguments():
    lib = sanitized(POINTERS)
    x, out = torch.arange(8.0), torch.zeros(8)
    args = struct.pack("<QQ", out.data_ptr(), x.data_ptr())
    lib.copy(args, out, x, threads=8)
    assert out.equal(x)
    _, write = reports_of(lib.copy, args, out, x, threads=9)
    assert (write.variable, write.index) == ("argument 1", 8)


def test_memory_that_the_kernel_was_not_given():
    lib = sanitized(POINTERS)
    x, out = torch.arange(8.0), torch.zeros(8)
    args = struct.pack("<QQ", out.data_ptr(), x.data_ptr())
    (stray,) = reports_of(lib.copy, args, out, threads=8)
    assert (stray.check, stray.variable, stray.line) == (Check.OUT_OF_BOUNDS, None, 6)
    assert "in no buffer that the kernel was given" in str(stray)


def test_locals_and_constants_are_the_kernels_own():
    lib = sanitized("""
        constant float weights[4] = {1, 2, 3, 4};
        inline void fill(thread float* values, float x) {
          for (int k = 0; k < 8; ++k) values[k] = x + k;
        }
        kernel void weigh(device float* x, uint i [[thread_position_in_grid]]) {
          float values[8];
          fill(values, x[i]);
          x[i] = weights[i % 4] * values[i % 8];
        }""")
    x = torch.zeros(8)
    lib.weigh(x, group_size=8)
    assert x.tolist() == [0, 2, 6, 12, 4, 10, 18, 28]


def test_the_rest_of_the_storage_belongs_to_a_view():
    lib = sanitized("""
        kernel void fill(device float* x, uint i [[thread_position_in_grid]]) { x[i] = i; }""")
    x = torch.zeros(4, 8)
    lib.fill(x[1, :4], threads=24)
    assert x[1:].flatten().tolist() == list(range(24))


def test_threads_in_three_dimensions():
    lib = sanitized("""
        kernel void last(device float* x, uint3 at [[thread_position_in_grid]]) {
          if (all(at == uint3(4, 2, 1))) x[99] = 1;
        }""")
    (report,) = reports_of(lib.last, torch.zeros(8), threads=(5, 3, 2), group_size=(4, 2, 2))
    assert (report.thread, report.threadgroup) == ((0, 0, 1), (1, 1, 0))


@pytest.mark.parametrize("compiled", [True, False], ids=["sanitized", "plain"])
def test_too_much_threadgroup_memory_says_what_adds_to_it(compiled):
    lib = compile_shader("""
        kernel void big(device float* x, threadgroup float* shared [[threadgroup(0)]],
                        uint i [[thread_position_in_threadgroup]]) {
          threadgroup float tile[5000];
          threadgroup half column[200];
          tile[i] = 0;
          column[i] = 0;
          shared[i] = 0;
          x[i] = tile[i] + column[i] + shared[i];
        }""", sanitize=compiled)  # fmt: skip
    lib.big(torch.zeros(4), threadgroup_lengths={0: 1024})
    with pytest.raises(LaunchError) as caught:
        lib.big(torch.zeros(4), threadgroup_lengths={0: 16384})
    assert "36384 bytes are needed, 32768 is the most" in caught.value.message
    assert "'shared' takes 16384" in caught.value.message
    assert "'tile' 20000" in caught.value.message


def test_only_the_cpu_has_a_sanitizer():
    with pytest.raises(MpskitError, match="The mps backend has no sanitizer"):
        compile_shader("", backend="mps", sanitize=True)


def test_headers_are_named_where_the_mistake_is_theirs(tmp_path):
    (tmp_path / "store.h").write_text(
        "inline void store(device float* x, uint i) {\n  x[i + 1] = 1;\n}\n"
    )
    lib = compile_shader(
        '#include "store.h"\n'
        "kernel void stores(device float* x, uint i [[thread_position_in_grid]]) { store(x, i); }",
        include_dirs=[tmp_path],
        sanitize=True,
    )
    (report,) = reports_of(lib.stores, torch.zeros(4))
    assert (report.file, report.line) == (str(tmp_path / "store.h"), 2)

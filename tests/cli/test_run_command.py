# ruff: noqa: E501 (expected output stands as it is printed)
"""What `mpskit run` launches, prints, writes and refuses."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy
from click.testing import CliRunner
from expecttest import TestCase

from mpskit.cli.run_command import command
from mpskit.errors import MpskitError

SOURCE = """\
#include <metal_stdlib>
#include "factor.h"
using namespace metal;

kernel void scale(
    device const half* x,
    device float* out,
    constant float& by,
    constant uint2& shift,
    uint i [[thread_position_in_grid]]) {
  out[i] = FACTOR * by * float(x[i]) + shift.y;
}

kernel void sums(
    device int* x, threadgroup int* all [[threadgroup(0)]], uint i [[thread_index_in_threadgroup]]) {
  all[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  int sum = 0;
  for (uint k = 0; k <= i; ++k) sum += all[k];
  x[i] = sum;
}

kernel void racy(device float* x, uint i [[thread_position_in_grid]]) {
  x[i / 2] = i;
}

kernel void endless(device int* x) {
  while (x[0] == 0) threadgroup_barrier(mem_flags::mem_none);
}
"""


class RunCommandTest(TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "kernels.metal").write_text(SOURCE)
        (self.folder / "headers").mkdir()
        (self.folder / "headers/factor.h").write_text("#define FACTOR 2.0f\n")

    def run_kernel(self, kernel: str, *options: str) -> str:
        """The command's output, or the error that a user would be shown; the folder as DIR."""
        arguments = [self.folder / "kernels.metal", "--include", self.folder / "headers"]
        arguments += ["--kernel", kernel, *options]
        result = CliRunner().invoke(command, [*map(str, arguments)])
        output = result.output
        if isinstance(result.exception, MpskitError):
            output += f"error: {result.exception}\n"
        elif result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return output.replace(str(self.folder), "DIR")

    def test_numbers_take_the_parameters_type(self) -> None:
        self.assertExpectedInline(
            self.run_kernel("scale", "--arg", "arange:half:2x5", "--arg", "zeros:float32:2x5",
                            "--arg", "3", "--arg", "9,100"),
            """\
out: float32 2x5: 100 106 112 118 124 130 136 142 …
""",
        )  # fmt: skip

    def test_sanitized(self) -> None:
        self.assertExpectedInline(
            self.run_kernel("sums", "--arg", "ones:int:4", "--threadgroup", "16", "--sanitize",
                            "--threads", "4", "--group-size", "4"),
            """\
x: int32 4: 1 2 3 4
The sanitizer has no report.
""",
        )  # fmt: skip

    def test_a_report(self) -> None:
        self.assertExpectedInline(
            self.run_kernel("racy", "--arg", "zeros:float:8", "--sanitize"),
            """\
error: The sanitizer has 1 report.
DIR/kernels.metal:24: race-in-threadgroup: data race between threads of a threadgroup
  kernel 'racy', buffer 'x', element 0
  DIR/kernels.metal:24: write by thread (1, 0, 0) of threadgroup (0, 0, 0)
  DIR/kernels.metal:24: write by thread (0, 0, 0) of threadgroup (0, 0, 0), before that
""",
        )

    def test_files(self) -> None:
        numpy.save(self.folder / "x.npy", numpy.arange(6, dtype=numpy.float16))
        out = self.folder / "out.npy"
        self.assertExpectedInline(
            self.run_kernel("scale", "--arg", str(self.folder / "x.npy"), "--arg",
                            "zeros:float:6", "--arg", "0.5", "--arg", "0,1", "--out", f"out={out}"),
            """\
out: float32 6: 1 2 3 4 5 6
out written to DIR/out.npy
""",
        )  # fmt: skip
        self.assertEqual(numpy.load(out).tolist(), [1, 2, 3, 4, 5, 6])

    def test_refusals(self) -> None:
        outputs = [
            self.run_kernel("scal"),
            self.run_kernel("racy", "--arg", "zeros:flot:8"),
            self.run_kernel("racy", "--arg", "zeroes:float:8"),
            self.run_kernel("racy", "--arg", "8 zeros"),
            self.run_kernel("racy", "--arg", "zeros:float:8xx"),
            self.run_kernel("racy", "--arg", str(self.folder / "none.npy")),
            self.run_kernel("racy", "--arg", "zeros:float:8", "--out", "y=a.npy"),
            self.run_kernel("racy", "--arg", "zeros:float:8", "--out", "x"),
            self.run_kernel("racy"),
            self.run_kernel("endless", "--arg", "zeros:int:8", "--timeout", "0.1").split(":")[1],
        ]
        self.assertExpectedInline(
            "\n".join(outputs),
            """\
error: The library has no kernel 'scal'. Did you mean scale?
It has: endless, racy, scale, sums.

error: 'zeros:flot:8': there is no dtype 'flot'.
Use one of float16, float32, bfloat16, int8, uint8, int16, uint16, int32, uint32, int64, uint64, bool.

error: There is no way 'zeroes' to fill a tensor.
Use one of zeros, ones, nan, empty, arange, rand, randn.

error: '8 zeros' is no kernel argument.
Write a number, numbers as 1,2,3, FILL:DTYPE:SHAPE (as zeros:float32:1024 or randn:half:4x8), a .npy file, or several of these as (…;…) for a struct that points to its tensors.

error: '8xx' is no size.
Write 1024, or 4x8, or 4x8x2.

error: DIR/none.npy cannot be read as a tensor: [Errno 2] No such file or directory: 'DIR/none.npy'.

error: There is no tensor argument 'y'.
There are: x.

error: --out x: no argument and .npy file.
Write out=result.npy.

error: racy was called with 0 arguments; nothing was given for buffer 0 ('x').

 endless did not end within 0.1 s""",
        )

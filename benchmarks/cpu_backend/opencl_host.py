"""Launches log_softmax_row.cl on the OpenCL that this process was started with.

Run by ``oclgrind``, which puts its OpenCL ahead of all others: it is taken from among the symbols
that the process already has. Prints JSON: seconds of each launch, and the largest error.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

ITEMS = 64  # work-items of a row, as in the kernel
COLUMNS_OF_AN_ITEM = 4
_DEVICE_TYPE_ALL = 0xFFFFFFFF
_READ_WRITE = 1 << 0
_COPY_HOST_POINTER = 1 << 5


class OpenClError(Exception):
    """A call of OpenCL's failed."""


class OpenCl:
    """The first device of the first platform, and the few calls that a launch takes."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        platform, device = c_void_p(), c_void_p()
        self._call("clGetPlatformIDs", 1, byref(platform), None)
        self._call(
            "clGetDeviceIDs", platform, ctypes.c_ulong(_DEVICE_TYPE_ALL), 1, byref(device), None
        )
        self._device = device
        self._context = self._create("clCreateContext", None, 1, byref(device), None, None)
        self._queue = self._create("clCreateCommandQueue", self._context, device, ctypes.c_ulong(0))

    def kernel(self, source: str, name: str, options: str) -> c_void_p:
        """Compiles OpenCL C and returns one of its kernels."""
        program = self._create(
            "clCreateProgramWithSource", self._context, 1, byref(c_char_p(source.encode())), None
        )
        self._call("clBuildProgram", program, 1, byref(self._device), options.encode(), None, None)
        return self._create("clCreateKernel", program, name.encode())

    def buffer(self, data: np.ndarray[Any, Any]) -> c_void_p:
        """A buffer that starts as a copy of ``data``."""
        flags = ctypes.c_ulong(_READ_WRITE | _COPY_HOST_POINTER)
        pointer = data.ctypes.data_as(c_void_p)
        return self._create("clCreateBuffer", self._context, flags, c_size_t(data.nbytes), pointer)

    def launch(self, kernel: c_void_p, buffers: list[c_void_p], items: int, group: int) -> None:
        """Runs a kernel on a one-dimensional range, to its end."""
        for index, buffer in enumerate(buffers):
            self._call(
                "clSetKernelArg", kernel, index, c_size_t(ctypes.sizeof(c_void_p)), byref(buffer)
            )
        sizes = (byref(c_size_t(items)), byref(c_size_t(group)))
        self._call("clEnqueueNDRangeKernel", self._queue, kernel, 1, None, *sizes, 0, None, None)
        self._call("clFinish", self._queue)

    def read(self, buffer: c_void_p, into: np.ndarray[Any, Any]) -> None:
        """Copies a buffer into ``into``."""
        pointer = into.ctypes.data_as(c_void_p)
        size, offset = c_size_t(into.nbytes), c_size_t(0)
        self._call("clEnqueueReadBuffer", self._queue, buffer, 1, offset, size, pointer, 0, None,
                   None)  # fmt: skip

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise OpenClError(f"{name} failed with {status}")

    def _create(self, name: str, *arguments: Any) -> c_void_p:
        function = getattr(self._library, name)
        function.restype = c_void_p
        status = c_int()
        made = c_void_p(function(*arguments, byref(status)))
        if status.value != 0:
            raise OpenClError(f"{name} failed with {status.value}")
        return made


def reference(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """log_softmax over rows, in float64."""
    shifted = x.astype(np.float64) - x.max(axis=1, keepdims=True)
    result: np.ndarray[Any, Any] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def run(rows: int, columns: int, launches: int) -> dict[str, Any]:
    """Launches the kernel on random rows; the first launch is a small one that is not timed."""
    opencl = OpenCl()
    source = Path(__file__).with_name("log_softmax_row.cl").read_text()
    vectors = columns // (ITEMS * COLUMNS_OF_AN_ITEM)
    kernel = opencl.kernel(source, "log_softmax_row", f"-DVECTORS={vectors}")
    x = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    out = np.zeros_like(x)
    buffers = [opencl.buffer(x), opencl.buffer(out)]
    opencl.launch(kernel, buffers, ITEMS, ITEMS)
    seconds = []
    for _ in range(launches):
        begin = time.perf_counter()
        opencl.launch(kernel, buffers, rows * ITEMS, ITEMS)
        seconds.append(time.perf_counter() - begin)
    opencl.read(buffers[1], out)
    return {"seconds": seconds, "error": float(np.abs(out - reference(x)).max())}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--columns", type=int, required=True)
    parser.add_argument("--launches", type=int, required=True)
    options = parser.parse_args()
    print(json.dumps(run(options.rows, options.columns, options.launches)))

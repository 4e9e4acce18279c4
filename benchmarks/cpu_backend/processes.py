"""Measurements that take a process of their own: compiling from nothing, and memory.

As a program it prints one measurement, named by its argument, as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.cpu_backend.row_kernel import RowKernel, compile_kernels
from mpskit.errors import MpskitError
from mpskit.metal import compile_shader

_ROOT = Path(__file__).parent.parent.parent
_PEAK_OF_MEMORY = Path("/proc/self/clear_refs")


def compile_times() -> tuple[dict[str, float], dict[str, float]]:
    """Seconds with an empty cache, then with the one that this has filled."""
    with tempfile.TemporaryDirectory() as cache:
        cold = _measured("compile", MPSKIT_CACHE_DIR=cache)
        return cold, _measured("compile", MPSKIT_CACHE_DIR=cache)


def memory_beyond_buffers(rows: int, columns: int, *, sanitize: bool) -> int | None:
    """Bytes that a launch takes at its highest, beyond its buffers; None where no system says."""
    if not _PEAK_OF_MEMORY.exists():
        return None
    name = "sanitized-memory" if sanitize else "memory"
    bytes_taken: int = _measured(name, str(rows), str(columns))
    return bytes_taken


def _measured(*arguments: str, **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", __name__, *arguments],
        cwd=_ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise MpskitError(f"Measuring {arguments[0]} failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


# ---- in the process of a measurement ----


def _compile() -> dict[str, float]:
    """The compiler's version and the runtime, once a machine; then LogSoftmax.metal.

    ``processor``: seconds that the compiler worked on that, however busy the machine was.
    """
    begin = time.perf_counter()
    compile_shader("kernel void nothing(device int* x) {}")
    first, worked = time.perf_counter(), _compiler_seconds()
    compile_kernels()
    return {
        "first kernel": first - begin,
        "LogSoftmax.metal": time.perf_counter() - first,
        "processor": _compiler_seconds() - worked,
    }


def _compiler_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _memory(rows: str, columns: str, *, sanitize: bool = False) -> int:
    row_kernel = RowKernel(compile_kernels(sanitize=sanitize), int(rows), int(columns))
    _PEAK_OF_MEMORY.write_text("5")
    before = _status("VmRSS")
    row_kernel.seconds()
    return _status("VmHWM") - before


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return 1024 * int(kilobytes)


_MEASUREMENTS: dict[str, Callable[..., Any]] = {
    "compile": _compile,
    "memory": _memory,
    "sanitized-memory": lambda *sizes: _memory(*sizes, sanitize=True),
}

if __name__ == "__main__":
    torch.set_num_threads(2)
    name, *arguments = sys.argv[1:]
    print(json.dumps(_MEASUREMENTS[name](*arguments)))

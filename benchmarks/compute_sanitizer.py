"""Every kernel of the patch set under NVIDIA's compute-sanitizer, on small tensors.

    python benchmarks/compute_sanitizer.py > compute_sanitizer_h200.json

Needs an NVIDIA GPU and the CUDA toolkit's compute-sanitizer. Prints, for each tool, the kernels
that were launched under it and what it found; the exit status is 1 where it found anything.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from mpskit.errors import MpskitError
from mpskit.verify.op_under_test import OpUnderTest
from mpskit.verify.plan import BackwardKernel, Index, Kernel

TOOLS = ("memcheck", "racecheck")
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
# With and without vectors, edges, several threadgroups, several batches; the last by columns.
SHAPES = (((3, 5), 1), ((2, 257), 1), ((4, 1024), 1), ((2, 9001), 1), ((300, 64), 0))


def exercise(backend: str) -> list[str]:
    """Runs both ops on every branch of their plans; returns the kernels that were launched."""
    launched: set[str] = set()
    for forced, (shape, dim), dtype in product(_forced(), SHAPES, DTYPES):
        x = torch.randn(shape, dtype=dtype, device=backend, requires_grad=True)
        with OpUnderTest(backend, **forced) as op:
            try:
                torch.log_softmax(x, dim).sum().backward()
            except MpskitError:  # the branch cannot run this shape
                continue
            finally:
                launched |= set(op.launches)
    return sorted(launched)


def _forced() -> Iterator[dict[str, Any]]:
    for index in Index:
        yield from ({"kernel": kernel, "index": index} for kernel in Kernel)
        yield from ({"backward_kernel": kernel, "index": index} for kernel in BackwardKernel)


def check(tool: str) -> dict[str, Any]:
    """Runs this script's ``exercise`` under a tool: what was launched, and what was found."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "launched.json"
        command = ["compute-sanitizer", "--tool", tool, "--report-api-errors", "no"]
        # torch's own kernels are not of interest here.
        command += ["--kernel-name", "kernel_substring=metal_", "--error-exitcode", "1"]
        run = subprocess.run(
            [*command, sys.executable, __file__, "--exercise", str(file)],
            capture_output=True,
            text=True,
        )
        lines = run.stdout.splitlines()
        return {
            "command": " ".join(command),
            "clean": run.returncode == 0,
            "kernels": json.loads(file.read_text()) if file.exists() else [],
            "summary": [line for line in lines if "SUMMARY" in line],
            "output": [] if run.returncode == 0 else lines[-100:] + run.stderr.splitlines()[-20:],
        }


def main() -> int:
    if sys.argv[1:2] == ["--exercise"]:
        Path(sys.argv[2]).write_text(json.dumps(exercise("cuda")))
        return 0
    exercise("cuda")  # compiles, and what fails without a tool need not be tried under one
    found = {tool: check(tool) for tool in TOOLS}
    report = {
        "device": torch.cuda.get_device_name(),
        "date": datetime.date.today().isoformat(),
        "tools": found,
    }
    print(json.dumps(report, indent=1))
    return 0 if all(each["clean"] for each in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

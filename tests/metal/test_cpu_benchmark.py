"""The benchmark of the cpu backend, on few rows: what it measures is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def printed():
    sections = ["--section=speed", "--section=memory", "--section=fibers"]
    sizes = ["--rows=64", "--oclgrind-rows=4", "--rounds=1"]
    command = [sys.executable, "-m", "benchmarks.cpu_backend", *sections, *sizes]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def cells(printed: str, name: str) -> list[str]:
    return [cell.strip() for cell in re.search(rf"\| {name} \|(.*)\|", printed)[1].split("|")]


def test_speed_is_measured_beside_oclgrind_where_there_is_one(printed):
    assert float(cells(printed, "cpu backend")[0]) > 0
    assert float(cells(printed, "cpu backend, sanitizer")[0]) > 0
    assert "Oclgrind is not installed" in printed or float(cells(printed, "Oclgrind")[0]) > 0


def test_a_kernel_that_waits_for_nobody_pays_for_no_fibers(printed):
    assert cells(printed, "alone")[1] == "1"
    assert cells(printed, "with its simdgroup")[1] == "32"
    assert cells(printed, "with its threadgroup")[1] == "256"


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from Linux")
def test_a_launch_takes_little_more_than_its_buffers(printed):
    section = printed[printed.index("## Memory") :]
    assert float(cells(section, "cpu backend")[0]) < 64

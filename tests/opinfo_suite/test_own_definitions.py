"""A patch set that brings an op of its own to the suite."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import opinfo

SUITE = Path(opinfo.__file__).parent

KERNELS = """
#include <c10/metal/utils.h>
template <typename T>
kernel void exp2_dense(device T* out, constant T* x, uint i [[thread_position_in_grid]]) {
  out[i] = static_cast<T>(::metal::precise::exp2(static_cast<float>(x[i])));
}
#define REGISTER(T) \\
  template [[host_name("exp2_" #T)]] kernel void exp2_dense<T>(device T*, constant T*, uint);
REGISTER(float)
REGISTER(half)
REGISTER(bfloat)
"""

DEFINITION = """
import torch
from torch.testing._internal.common_methods_invocations import op_db
from mpskit.verify import METAL_DTYPES, Implementation
from opinfo.definition import Definition

def launch(kernels, out, x):
    kernel = getattr(kernels.library, f"exp2_{METAL_DTYPES[out.dtype]}")
    dense = torch.empty_like(out, memory_format=torch.contiguous_format)
    kernel(dense, x.to(out.dtype).contiguous(), threads=x.numel(), group_size=32)
    out.copy_(dense)

EXP2 = Implementation(
    functional=torch.ops.aten.exp2.default,
    out=torch.ops.aten.exp2.out,
    kernels="kernels/Exp2.metal",
    launch=launch,
)
DEFINITIONS = (
    Definition(
        name="exp2",
        function="exp2.out",
        implementations=(EXP2,),
        reference=lambda sample: torch.pow(2.0, sample.input.detach().cpu().double()),
        upstream=tuple(op for op in op_db if op.name == "exp2"),
    ),
)
"""

TEST = """
import torch
from opinfo.definitions import definitions_under_test
from opinfo.op_test_case import OpTestCase

class TestExp2(OpTestCase):
    def test_of_the_patch_set(self):
        (definition,) = definitions_under_test()
        with definition.kernels_in_place() as kernels:
            self.assertEqual(torch.exp2(torch.zeros(3)), torch.ones(3))
        kernels.require_launches("exp2_float")
"""


@pytest.fixture
def patch_set(tmp_path: Path) -> Path:
    for name, text in {
        "kernels/Exp2.metal": KERNELS,
        "opinfo/exp2.py": DEFINITION,
        "opinfo/test_exp2.py": TEST,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(patch_set: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", str(SUITE), "-c", str(SUITE / "pytest.ini"), "-v"),
            f"--patch-set={patch_set}",
        ],
        capture_output=True,
        text=True,
    )


def test_its_samples_and_tests_run_and_ours_do_not(patch_set: Path) -> None:
    result = run(patch_set)
    assert result.returncode == 0, result.stdout
    for test in ("test_samples_exp2_cpu_float16", "test_aliases_exp2", "test_of_the_patch_set"):
        assert re.search(rf"{test}\w* PASSED", result.stdout), test
    assert "log_softmax" not in result.stdout


def test_a_fault_in_its_kernels_fails(patch_set: Path) -> None:
    kernels = patch_set / "kernels/Exp2.metal"
    kernels.write_text(kernels.read_text().replace("precise::exp2", "precise::exp"))
    result = run(patch_set)
    assert result.returncode == 1
    assert re.search(r"float32\[\d.*wrong, the worst at.*launched exp2_float", result.stdout)


def test_a_module_without_definitions_is_an_error(patch_set: Path) -> None:
    (patch_set / "opinfo/exp2.py").write_text("")
    assert "exp2.py has no DEFINITIONS." in run(patch_set).stdout

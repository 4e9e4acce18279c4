"""What the patch puts into PyTorch's test_mps.py, run with the kernels in place."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import unittest
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F

from mpskit.errors import MpskitError
from mpskit.patching import load_patch_set
from mpskit.patching.edits import InsertAfter
from mpskit.verify.mps_tests import PATH, InPlaceOfMps, classes_of, patched_stand_in
from mpskit.verify.op_under_test import OpUnderTest
from mpskit.verify.plan import METAL_DTYPES

ROOT = Path(__file__).resolve().parents[2]
(FORWARD, *_) = load_patch_set().patches


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = loaded
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = tmp_path_factory.mktemp("patched") / "test_mps.py"
    path.write_text(patched_stand_in(FORWARD))
    return load(path)


def run(
    module: ModuleType, chosen: Sequence[str] = (), patch_dir: Path | None = None
) -> tuple[unittest.TestResult, OpUnderTest]:
    """Runs the tests whose names begin with one of ``chosen``, or all."""
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*.{name}*" for name in chosen] or None
    result = unittest.TestResult()
    # As many cores as the largest Apple GPU has: the most rows must be there for no split.
    with InPlaceOfMps("cpu"), OpUnderTest(cores=80, patch_dir=patch_dir) as op:
        loader.loadTestsFromModule(module).run(result)
    return result, op


def test_they_pass_with_every_kernel(module: ModuleType) -> None:
    assert classes_of(FORWARD) == ["TestLogSoftmax"]
    result, op = run(module)
    assert result.wasSuccessful(), "\n".join(text for _, text in (*result.failures, *result.errors))
    assert (result.testsRun > 50, result.skipped) == (True, [])
    for kernel in FORWARD.kernels:
        op.require_launches(*(f"{kernel.name}_{dtype}_u32" for dtype in METAL_DTYPES.values()))
        op.require_launches(f"{kernel.name}_half_u64")


mutation_check = load(ROOT / "ci/mutation_check.py")
MUTATIONS = {mutation.name: mutation for mutation in mutation_check.load_mutations()}


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("out_stride_ignored", "test_out"),
        ("u32_overflow", "test_large_index"),
    ],
)
def test_a_wrong_kernel_fails_them(
    fault: str, test: str, module: ModuleType, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(ROOT / "aten_patch", tmp_path / "aten_patch"))
    MUTATIONS[fault].apply(copy)
    result, _ = run(module, [test], copy)
    assert result.testsRun
    assert not result.wasSuccessful()


def test_a_place_that_the_stand_in_lacks_is_named() -> None:
    lost = InsertAfter(PATH, "class TestNoSuch(TestCaseMPS):", "pass")
    patch = replace(FORWARD, common_edits=(lost,))
    with pytest.raises(MpskitError, match=r"stand-in for test/test_mps\.py: looked for `class Te"):
        patched_stand_in(patch)


def test_a_patch_may_have_no_such_tests() -> None:
    assert patched_stand_in(replace(FORWARD, common_edits=())) is None


def test_another_device_takes_the_place_of_mps() -> None:
    with InPlaceOfMps("cpu"):
        x = torch.ones(3, device="mps").to("mps").to(torch.device("mps"))
        y = F.pad(torch.zeros(2, device=torch.device("mps")), (0, 1))
        z = torch.tensor([1.0]).to(device="mps", dtype=torch.half)
    assert {t.device.type for t in (x, y, z)} == {"cpu"}
    assert z.dtype is torch.half

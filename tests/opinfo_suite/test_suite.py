"""A run of the suite from outside: what it counts, and what becomes of faults."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mpskit.errors import MpskitError
from mpskit.metal import CompileError
from mpskit.patching.series import default_patch_set_directory
from mpskit.verify.reports.result import (
    Failure,
    OpResult,
    Outcomes,
    SuiteResult,
    WorstError,
    split_host_name,
)
from mpskit.verify.suite import Selection, run_suite
from mpskit.verify.tested import sources_under_test

KERNELS = Path("aten/src/ATen/native/mps/kernels/LogSoftmax.metal")


@pytest.fixture
def patch_set(tmp_path: Path) -> Path:
    """A copy to make faults in."""
    return Path(shutil.copytree(default_patch_set_directory(), tmp_path / "aten_patch"))


# What the kernels write for an element.
RESULT = "return (value - log.maximum) - log.sum;"


def _replace(patch_set: Path, find: str, replacement: str) -> None:
    text = (patch_set / KERNELS).read_text()
    assert find in text
    (patch_set / KERNELS).write_text(text.replace(find, replacement))


def test_counts_what_was_run() -> None:
    seen: list[tuple[int, int]] = []
    result = run_suite(
        Selection(expression="test_samples_log_softmax_dims or errors_log_softmax"),
        workers=1,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert result.ok
    assert (seen[0], seen[-1]) == ((0, 4), (4, 4))
    assert (result.passed, result.failed, result.skipped) == (4, 0, 0)
    one_each = dict.fromkeys(("bfloat16", "float16", "float32", "none"), Outcomes(passed=1))
    assert result.tests == one_each
    assert result.samples == dict.fromkeys(("bfloat16", "float16", "float32"), 37)
    assert sum(result.launches.values()) == sum(result.launches_by_kernel.values()) >= 111
    launched = {split_host_name(host_name)[0] for host_name in result.launches}
    assert launched | set(result.never_launched) == set(result.kernels)
    assert {"log_softmax_finalize", "log_softmax_partial"} <= set(result.never_launched)
    seen = result.ops["log_softmax"]
    assert seen.launches == result.launches
    assert seen.input_layouts == {"contiguous": 102, "permuted": 9}
    assert seen.output_layouts == {"contiguous": 111}
    assert set(seen.worst) == set(seen.cpu_worst) == set(result.samples)
    for errors in (seen.worst, seen.cpu_worst):
        for dtype, worst in errors.items():
            assert 0 < worst.ulp < 5
            assert f"{dtype}[" in worst.sample
            assert f"TestKernelsCPU::test_samples_log_softmax_dims_cpu_{dtype}#" in worst.reproduce
    assert result.patch_files == sources_under_test()
    assert SuiteResult.from_json(result.to_json()) == replace(result, cases=())
    assert result.closing_line.startswith("4 passed")


def test_a_wrong_kernel_fails_with_the_line_that_reproduces_it(
    patch_set: Path, tmp_path: Path
) -> None:
    _replace(patch_set, RESULT, "return (value - log.maximum) - 2 * log.sum;")
    announced: list[Failure] = []
    result = run_suite(
        Selection(expression="test_samples_log_softmax_dims and float32", patch_set=patch_set),
        workers=1,
        on_failure=announced.append,
    )
    assert not result.ok
    (failure,) = result.failures
    assert announced == [failure]
    for part in ("float32[", "dim=", "wrong, the worst at", "expected", "got", "ULP", "launched"):
        assert part in failure.message
    assert failure.reproduce.startswith("mpskit test --only 'TestKernelsCPU::test_samples_")
    assert failure.reproduce.endswith(f"--patch-set {patch_set}")
    report = tmp_path / "again.json"
    again = subprocess.run(
        f"{sys.executable} -m {failure.reproduce} --report {report}",
        shell=True,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert again.returncode == 1, again.stderr
    assert failure.message.splitlines()[0] in again.stdout
    data = json.loads(report.read_text())
    assert data["samples"] == {"float32": 1}
    assert data["failures"][0]["reproduce"] == failure.reproduce


def test_a_kernel_that_crashes_fails_its_test_alone(patch_set: Path) -> None:
    _replace(patch_set, RESULT, "return *reinterpret_cast<device float*>(ulong(8));")
    selection = Selection(
        expression="test_samples_log_softmax_dims and float16 or errors_log_softmax",
        patch_set=patch_set,
    )
    result = run_suite(selection, workers=1)
    assert result.failed == 2  # float16 matches bfloat16 too
    assert result.passed == 1
    assert all("KernelFaultError" in failure.message for failure in result.failures)


def test_a_kernel_that_does_not_compile_is_an_error_of_its_own(patch_set: Path) -> None:
    _replace(patch_set, "float sum = 0;", "float sum = no_such_name;")
    with pytest.raises(CompileError, match="no_such_name"):
        run_suite(Selection(patch_set=patch_set))


def test_no_such_test() -> None:
    with pytest.raises(MpskitError, match="There is no test of that name: -k no_such_test"):
        run_suite(Selection(expression="no_such_test"), workers=1)


def test_an_expression_that_is_none() -> None:
    with pytest.raises(MpskitError, match="Wrong expression passed to '-k'"):
        run_suite(Selection(expression="and and"), workers=1)


def test_a_directory_that_is_no_patch_set(tmp_path: Path) -> None:
    with pytest.raises(MpskitError, match="has no"):
        run_suite(Selection(patch_set=tmp_path))


def _result(**changes: object) -> SuiteResult:
    fields: dict[str, object] = {
        "backend": "cpu",
        "seconds": 1.0,
        "tests": {},
        "ops": {},
        "launches": {"log_softmax_half_u32": 2},
        "kernels": ("log_softmax",),
        "failures": (),
        "closing_line": "",
    }
    return SuiteResult(**{**fields, **changes})


def test_a_whole_run_must_launch_every_kernel() -> None:
    assert _result().ok
    assert not _result(kernels=("log_softmax", "log_softmax_row")).ok
    assert _result(kernels=("log_softmax", "log_softmax_row"), chosen=("-k", "x")).ok
    assert not _result(failures=(Failure("t", "m", "r"),)).ok


def test_json_has_what_is_counted_too() -> None:
    data = _result(tests={"float16": Outcomes(passed=3, skipped=1)}).to_json()
    assert (data["passed"], data["failed"], data["skipped"]) == (3, 0, 1)
    assert data["tests"]["float16"] == {"passed": 3, "failed": 0, "skipped": 1}
    assert data["launches_by_kernel"] == {"log_softmax": 2}
    assert data["ok"] is True


def test_infinite_errors_are_null_in_json() -> None:
    seen = OpResult({"float16": 1}, {}, {}, {}, {"float16": WorstError(math.inf, "x")}, {})
    result = _result(ops={"log_softmax": seen})
    data = result.to_json()
    assert data["worst"]["float16"] == {"ulp": None, "sample": "x", "reproduce": ""}
    assert data["ops"]["log_softmax"]["worst"] == data["worst"]
    assert SuiteResult.from_json(json.loads(json.dumps(data))) == result


def test_host_names_have_three_parts() -> None:
    assert split_host_name("log_softmax_row_bfloat_u64") == ("log_softmax_row", "bfloat", "u64")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("square_half", ("square", "half", "")),
        ("copy_u32", ("copy", "", "u32")),
        ("row_sum", ("row_sum", "", "")),
        ("half", ("half", "", "")),
    ],
)
def test_host_names_of_other_kernels_may_have_fewer(name: str, parts: tuple[str, ...]) -> None:
    assert split_host_name(name) == parts

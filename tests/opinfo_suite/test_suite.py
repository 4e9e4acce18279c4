"""A run of the suite from outside: what it counts, and what becomes of faults."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mpskit.errors import MpskitError
from mpskit.metal import CompileError
from mpskit.patching.series import default_patch_set_directory
from mpskit.verify.suite import (
    Failure,
    Outcomes,
    SuiteResult,
    WorstError,
    run_suite,
    split_host_name,
)

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
        expression="test_samples_log_softmax_dims or errors",
        workers=1,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert result.ok
    assert (seen[0], seen[-1]) == ((0, 4), (4, 4))
    assert (result.passed, result.failed, result.skipped) == (4, 0, 0)
    one_each = dict.fromkeys(("bfloat16", "float16", "float32", "none"), Outcomes(passed=1))
    assert result.tests == one_each
    assert result.samples == dict.fromkeys(("bfloat16", "float16", "float32"), 33)
    assert sum(result.launches.values()) == sum(result.launches_by_kernel.values()) >= 99
    launched = {split_host_name(host_name)[0] for host_name in result.launches}
    assert launched | set(result.never_launched) == set(result.kernels)
    assert {"log_softmax_finalize", "log_softmax_partial"} <= set(result.never_launched)
    for dtype, worst in result.worst.items():
        assert 0 < worst.ulp < 3
        assert f"{dtype}[" in worst.sample
    assert result.closing_line.startswith("4 passed")


def test_a_wrong_kernel_fails_with_the_line_that_reproduces_it(patch_set: Path) -> None:
    _replace(patch_set, RESULT, "return (value - log.maximum) - 2 * log.sum;")
    announced: list[Failure] = []
    result = run_suite(
        expression="test_samples_log_softmax_dims and float32",
        workers=1,
        patch_set=patch_set,
        on_failure=announced.append,
    )
    assert not result.ok
    (failure,) = result.failures
    assert announced == [failure]
    for part in ("float32[", "dim=", "wrong, the worst at", "expected", "got", "ULP", "launched"):
        assert part in failure.message
    assert failure.reproduce.startswith("PYTORCH_OPINFO_SAMPLE_INPUT_INDEX=")
    assert failure.reproduce.endswith(f"--patch-set {patch_set}")
    again = subprocess.run(
        failure.reproduce.replace("mpskit", f"{sys.executable} -m mpskit", 1),
        shell=True,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert again.returncode == 1, again.stderr
    assert failure.message.splitlines()[0] in again.stdout


def test_a_kernel_that_crashes_fails_its_test_alone(patch_set: Path) -> None:
    _replace(patch_set, RESULT, "return *reinterpret_cast<device float*>(ulong(8));")
    result = run_suite(
        expression="test_samples_log_softmax_dims and float16 or errors",
        workers=1,
        patch_set=patch_set,
    )
    assert result.failed == 2  # float16 matches bfloat16 too
    assert result.passed == 1
    assert all("KernelFaultError" in failure.message for failure in result.failures)


def test_a_kernel_that_does_not_compile_is_an_error_of_its_own(patch_set: Path) -> None:
    _replace(patch_set, "float sum = 0;", "float sum = no_such_name;")
    with pytest.raises(CompileError, match="no_such_name"):
        run_suite(patch_set=patch_set)


def test_no_such_test() -> None:
    with pytest.raises(MpskitError, match="No test has such a name"):
        run_suite(expression="no_such_test", workers=1)


def test_an_expression_that_is_none() -> None:
    with pytest.raises(MpskitError, match="Wrong expression passed to '-k'"):
        run_suite(expression="and and", workers=1)


def test_a_directory_that_is_no_patch_set(tmp_path: Path) -> None:
    with pytest.raises(MpskitError, match="has no"):
        run_suite(patch_set=tmp_path)


def _result(**changes: object) -> SuiteResult:
    fields: dict[str, object] = {
        "backend": "cpu",
        "expression": None,
        "seconds": 1.0,
        "tests": {},
        "samples": {},
        "launches": {"log_softmax_half_u32": 2},
        "kernels": ("log_softmax",),
        "worst": {"float16": WorstError(0.5, "x")},
        "failures": (),
        "closing_line": "",
    }
    return SuiteResult(**{**fields, **changes})


def test_a_whole_run_must_launch_every_kernel() -> None:
    assert _result().ok
    assert not _result(kernels=("log_softmax", "log_softmax_row")).ok
    assert _result(kernels=("log_softmax", "log_softmax_row"), expression="x").ok
    assert not _result(failures=(Failure("t", "m", "r"),)).ok


def test_json_has_what_is_counted_too() -> None:
    data = _result(tests={"float16": Outcomes(passed=3, skipped=1)}).to_json()
    assert (data["passed"], data["failed"], data["skipped"]) == (3, 0, 1)
    assert data["tests"]["float16"] == {"passed": 3, "failed": 0, "skipped": 1}
    assert data["launches_by_kernel"] == {"log_softmax": 2}
    assert data["ok"] is True


def test_infinite_errors_are_null_in_json() -> None:
    data = _result(worst={"float16": WorstError(float("inf"), "x")}).to_json()
    assert data["worst"] == {"float16": {"ulp": None, "sample": "x"}}


def test_host_names_have_three_parts() -> None:
    assert split_host_name("log_softmax_row_bfloat_u64") == ("log_softmax_row", "bfloat", "u64")

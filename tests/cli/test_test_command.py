"""``mpskit test`` from the shell's side."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mpskit.cli.test_command import command, show_result
from mpskit.patching.series import default_patch_set_directory
from mpskit.verify.suite import Failure, Outcomes, SuiteResult, WorstError

ONE_TEST = ("-k", "test_samples_log_softmax_dims and float32", "-n", "1")
KERNELS = Path("aten/src/ATen/native/mps/kernels/LogSoftmax.metal")


def test_prints_tables_and_pytests_count() -> None:
    outcome = CliRunner().invoke(command, ONE_TEST)
    assert outcome.exit_code == 0, outcome.output
    assert "log_softmax_row" in outcome.stdout
    assert outcome.stdout.strip().splitlines()[-1].startswith("1 passed")


def test_json_is_all_there_is_on_standard_output() -> None:
    outcome = CliRunner().invoke(command, [*ONE_TEST, "--json"])
    data = json.loads(outcome.stdout)
    assert data["passed"] == 1
    assert data["samples"] == {"float32": 33}


def test_a_failure_makes_the_exit_code_1(tmp_path: Path) -> None:
    patch_set = Path(shutil.copytree(default_patch_set_directory(), tmp_path / "patches"))
    text = (patch_set / KERNELS).read_text()
    (patch_set / KERNELS).write_text(text.replace("- log_sum)", "+ log_sum)"))
    outcome = CliRunner().invoke(command, [*ONE_TEST, "--patch-set", str(patch_set)])
    assert outcome.exit_code == 1
    assert "FAILED" in outcome.stdout
    assert "again: PYTORCH_OPINFO_SAMPLE_INPUT_INDEX=" in outcome.stdout
    assert "failed: " in outcome.stderr


@pytest.mark.parametrize("arguments", [["--backend", "none"], ["-n", "0"]])
def test_wrong_options_are_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(command, arguments).exit_code == 2


def test_help_does_not_wait_for_torch() -> None:
    script = (
        "import sys; from mpskit.cli.test_command import command; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_shows_failures_kernels_never_launched_and_tests_without_dtype(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = SuiteResult(
        backend="cpu",
        expression=None,
        seconds=12.34,
        tests={"float32": Outcomes(3, 1, 0), "none": Outcomes(passed=2), "int8": Outcomes(1)},
        samples={"float32": 40},
        launches={"log_softmax_float_u32": 30, "log_softmax_float_u64": 10},
        kernels=("log_softmax", "log_softmax_row"),
        worst={"float32": WorstError(1.5, "float32[2, 3], dim=1")},
        failures=(Failure("test_ops.py::TestX::test_y", "it is wrong", "mpskit test -k test_y"),),
        closing_line="1 failed, 6 passed in 12.00s",
    )
    show_result(result)
    shown = capsys.readouterr().out
    for text in ("it is wrong", "again: mpskit test -k test_y", "never launched: log_softmax_row"):
        assert text in shown
    assert shown.splitlines()[-1] == "1 failed, 6 passed in 12.00s"

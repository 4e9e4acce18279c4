"""``mpskit test`` from the shell's side."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from mpskit.cli.test_command import command
from mpskit.verify.suite import Failure, Outcomes, SuiteResult, WorstError

ONE_TEST = ("-k", "test_samples_log_softmax_dims and float32", "-n", "1")


def test_prints_tables_and_pytests_count() -> None:
    outcome = CliRunner().invoke(command, ONE_TEST)
    assert outcome.exit_code == 0, outcome.output
    assert "log_softmax_row" in outcome.stdout
    assert outcome.stdout.strip().splitlines()[-1].startswith("1 passed")


@pytest.fixture
def failed(monkeypatch: pytest.MonkeyPatch) -> SuiteResult:
    """What ``mpskit test`` gets from a run with a failure."""
    failure = Failure("test_ops.py::TestX::test_y", "it is wrong", "mpskit test -k test_y")
    result = SuiteResult(
        backend="cpu",
        expression=None,
        seconds=12.34,
        tests={"float32": Outcomes(3, 1, 0), "none": Outcomes(passed=2), "int8": Outcomes(1)},
        samples={"float32": 40},
        launches={"log_softmax_float_u32": 30, "log_softmax_float_u64": 10},
        kernels=("log_softmax", "log_softmax_row"),
        worst={"float32": WorstError(1.5, "float32[2, 3], dim=1")},
        failures=(failure,),
        closing_line="1 failed, 6 passed in 12.00s",
    )

    def run_suite(*_: object, on_failure: Callable[[Failure], None], **__: object) -> SuiteResult:
        on_failure(failure)
        return result

    monkeypatch.setattr("mpskit.verify.suite.run_suite", run_suite)
    return result


def test_shows_failures_and_kernels_never_launched(failed: SuiteResult) -> None:
    outcome = CliRunner().invoke(command, [])
    assert outcome.exit_code == 1
    assert outcome.stderr == "failed: test_ops.py::TestX::test_y\n"
    for text in ("it is wrong", "again: mpskit test -k test_y", "never launched: log_softmax_row"):
        assert text in outcome.stdout
    assert outcome.stdout.splitlines()[-1] == failed.closing_line


def test_json_is_all_there_is_on_standard_output(failed: SuiteResult) -> None:
    outcome = CliRunner().invoke(command, ["--json"])
    assert outcome.exit_code == 1
    data = json.loads(outcome.stdout)
    assert (data["passed"], data["failed"], data["ok"]) == (6, 1, False)
    assert data["failures"][0]["reproduce"] == "mpskit test -k test_y"


@pytest.mark.parametrize("arguments", [["--backend", "none"], ["-n", "0"]])
def test_wrong_options_are_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(command, arguments).exit_code == 2


def test_help_does_not_wait_for_torch() -> None:
    script = (
        "import sys; from mpskit.cli.test_command import command; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0

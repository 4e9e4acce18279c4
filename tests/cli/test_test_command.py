"""``mpskit test`` from the shell's side."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mpskit.cli.test_command import command
from mpskit.errors import MpskitError
from mpskit.verify.reports.result import (
    Case,
    Failure,
    OpResult,
    Outcomes,
    SuiteResult,
    WorstError,
)
from mpskit.verify.suite import Selection

ONE_TEST = ("-k", "test_samples_log_softmax_dims", "--dtype", "float32", "-n", "1")
FAILURE = Failure("test_ops.py::TestX::test_y", "it is <wrong>", "mpskit test --only 'TestX::y#3'")
SAMPLE = "float32[2, 3], dim=1"
RESULT = SuiteResult(
    backend="cpu",
    seconds=12.34,
    tests={"float32": Outcomes(3, 1, 0), "none": Outcomes(passed=2), "int8": Outcomes(1)},
    ops={
        "log_softmax": OpResult(
            samples={"float32": 40},
            input_layouts={"contiguous": 30, "expanded": 10},
            output_layouts={"contiguous": 40},
            launches={"log_softmax_float_u32": 30},
            worst={"float32": WorstError(1.5, SAMPLE, "mpskit test --only 'TestX::z#7'")},
            cpu_worst={"float32": WorstError(1.75, SAMPLE)},
        )
    },
    launches={"log_softmax_float_u32": 30, "log_softmax_float_u64": 10},
    kernels=("log_softmax", "log_softmax_row"),
    failures=(FAILURE,),
    closing_line="1 failed, 6 passed in 12.00s",
    patch_files={"aten/LogSoftmax.metal": "abc123"},
    cases=(Case(FAILURE.test, "failed", 0.25, FAILURE.message), Case("a.py::B::c", "passed", 1)),
)


def test_one_test_of_one_dtype(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    outcome = CliRunner().invoke(command, [*ONE_TEST, "--report", str(report)])
    assert outcome.exit_code == 0, outcome.output
    assert "log_softmax_row" in outcome.stdout
    assert outcome.stdout.strip().splitlines()[-1].startswith("1 passed")
    data = json.loads(report.read_text())
    assert list(data["samples"]) == list(data["tests"]) == ["float32"]
    assert data["chosen"] == list(ONE_TEST[:4])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Selection]:
    """Runs end with RESULT at once; what they were asked for."""
    selections: list[Selection] = []

    def run_suite(
        selection: Selection, *, on_failure: Callable[[Failure], None], **_: object
    ) -> SuiteResult:
        selections.append(selection)
        on_failure(FAILURE)
        return RESULT

    monkeypatch.setattr("mpskit.verify.suite.run_suite", run_suite)
    return selections


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [*map(str, arguments)])


def test_options_choose_what_runs(asked: list[Selection], tmp_path: Path) -> None:
    run("--op", "a", "--op", "b", "--dtype", "float16", "-k", "x", "--sanitize", "--backend", "mps")
    run("--only", "TestX::y#3", "--patch-set", tmp_path)
    assert asked == [
        Selection("mps", None, True, "x", ("a", "b"), ("float16",)),
        Selection(only="TestX::y#3", patch_set=tmp_path),
    ]


def test_shows_failures_and_kernels_never_launched(asked: list[Selection]) -> None:
    outcome = run()
    assert outcome.exit_code == 1
    assert outcome.stderr == "failed: test_ops.py::TestX::test_y\n"
    for text in ("it is <wrong>", f"again: {FAILURE.reproduce}", "never launched: log_softmax_row"):
        assert text in outcome.stdout
    assert outcome.stdout.splitlines()[-1] == RESULT.closing_line


def test_json_is_all_there_is_on_standard_output(asked: list[Selection]) -> None:
    outcome = run("--json")
    assert outcome.exit_code == 1
    data = json.loads(outcome.stdout)
    assert (data["passed"], data["failed"], data["ok"]) == (6, 1, False)
    assert data["failures"][0]["reproduce"] == FAILURE.reproduce


def test_reports_are_written_in_every_format(asked: list[Selection], tmp_path: Path) -> None:
    files = [tmp_path / f"report{suffix}" for suffix in (".html", ".md", ".json")]
    outcome = run(
        *(part for file in files for part in ("--report", file)), "--junit", tmp_path / "x.xml"
    )
    assert outcome.exit_code == 1
    assert all(file.stat().st_size for file in files)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "report.html", "report.json", "report.md", "x.xml"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--report", "nowhere/report.html"), "there is no folder"),
        (("--report", "report.pdf"), "ends in .html, .md, .json"),
        (("--report", "report"), "ends in .html, .md, .json"),
        (("--junit", "nowhere/x.xml"), "there is no folder"),
        (("--junit", "."), "is a folder"),
        (("--dtype", "float8"), "No dtype float8 is tested"),
        (("--op", "relu6"), "No op relu6 is tested"),
        (("--backend", "mps", "--sanitize"), "has no sanitizer"),
        (("--only", "TestX::y#z"), "the index of a sample input"),
    ],
)
def test_what_is_refused_before_anything_runs(
    arguments: tuple[str, ...], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run(*arguments)
    assert isinstance(outcome.exception, MpskitError)
    assert why in str(outcome.exception)
    assert not list(tmp_path.iterdir())


def test_unknown_names_come_with_the_known_ones() -> None:
    for option, known in (("--op", "log_softmax"), ("--dtype", "float32, float16, bfloat16")):
        refused = run(option, "nothing").exception
        assert isinstance(refused, MpskitError)
        assert known in refused.hint


@pytest.mark.parametrize("arguments", [["--backend", "none"], ["-n", "0"]])
def test_wrong_options_are_refused(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_help_does_not_wait_for_torch() -> None:
    script = (
        "import sys; from mpskit.cli.test_command import command; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_an_interrupt_leaves_no_report_and_no_process(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    report.write_text("the last one")
    arguments = ("test", "-n", "1", "--report", report, "--junit", tmp_path / "x.xml")
    process = subprocess.Popen(
        [sys.executable, "-m", "mpskit", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    children = _wait_for_children(process.pid)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.strip()) == (130, "interrupted")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert report.read_text() == "the last one"
    assert not [child for child in children if _runs(child)]


def _wait_for_children(pid: int) -> list[int]:
    """The processes that ``pid`` has started for good: those that run pytest."""
    for _ in range(600):
        table = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True
        ).stdout
        rows = [line.split(None, 2) for line in table.splitlines()]
        children = [int(row[0]) for row in rows if int(row[1]) == pid and "-m pytest" in row[2]]
        if children:
            return children
        time.sleep(0.1)
    raise AssertionError("pytest was not started")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_lines_that_run_a_sample_again_can_be_pasted() -> None:
    selection = Selection("mps", Path("/a b"), sanitize=True, expression="x", dtypes=("float16",))
    line = selection.reproduce("sub/test_ops.py::TestX::test_y", 3)
    assert shlex.split(line) == [
        *("mpskit", "test", "--only", "TestX::test_y#3"),
        *("--backend", "mps", "--patch-set", "/a b", "--sanitize"),
    ]
    assert Selection().reproduce("test_ops.py::TestX::test_y", None).endswith(" TestX::test_y")


def test_only_the_selection_says_which_sample_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "PYTORCH_OPINFO_SAMPLE_INPUT_INDEX"
    monkeypatch.setenv(name, "3")
    assert name not in Selection().environment()
    assert Selection(only="TestX::test_y#7").environment()[name] == "7"

"""What `mpskit bench` measures, reports and refuses, on small shapes of the cpu backend."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from mpskit.cli.bench_command import command
from mpskit.errors import MpskitError
from mpskit.verify.benchmarks import contenders, timing
from mpskit.verify.benchmarks.ops import OPS, find_op
from mpskit.verify.benchmarks.report import accuracy_table, pull_request_table, summary
from mpskit.verify.benchmarks.run import Measurement, Report, run_benchmark
from mpskit.verify.benchmarks.timing import Repeated, Timing, measure
from mpskit.verify.benchmarks.workloads import Workload, load_workloads
from mpskit.verify.implementation import compile_kernels

BENCHMARKS = Path(__file__).resolve().parent.parent.parent / "benchmarks"
WORKLOADS = (
    Workload((3, 40), -1, "float32"),
    Workload((2, 6, 3, 2), 1, "float16", layout="channels_last"),
    Workload((1, 2100), -1, "bfloat16"),  # split, by the reference design
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few samples; torch.compile, which takes seconds for a shape, fails as if it were absent."""

    def fail(op: object) -> contenders.Contender:
        def prepare(case: object) -> contenders.Call:
            raise ImportError("no inductor here")

        return prepare

    monkeypatch.setattr(timing, "_SAMPLES", 3)
    monkeypatch.setattr(timing, "_SAMPLE_SECONDS", {"cpu": 1e-4})
    monkeypatch.setattr(timing, "_cache_bytes", lambda device: 0)
    monkeypatch.setattr(contenders, "compiled_op", fail)


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_all_contenders_are_timed_and_a_failure_has_its_reason(op):
    report = run_benchmark(WORKLOADS, backend="cpu", op=op, accuracy=True)
    assert report.op == op.name
    assert [m.workload for m in report.measurements] == list(WORKLOADS)
    for measurement in report.measurements:
        assert {"kernels", "reference", "torch", "elementwise"} <= measurement.timings.keys()
        assert measurement.failures == {"torch.compile": "no inductor here"}
        assert all(error.max_ulp < 4 for error in measurement.errors.values())
    assert ("copy" in report.measurements[0].timings) == (op.name == "log_softmax")
    assert json.loads(json.dumps(report.to_json()))["op"] == op.name


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_kernels_and_reference_design_compute_the_op(workload, op):
    case = op.make_case(workload, "cpu")
    expected = op.function(*(x.double() for x in case.inputs), case.dim)
    ways = [contenders.patch_kernels(op, "cpu", None, cores=4), contenders.torch_op(op)]
    if workload.layout == "contiguous":  # the reference design writes where its input lies
        ways.append(contenders.reference_design(op, "cpu"))
    for prepare in ways:
        case.output.fill_(7)
        prepare(case)()
        torch.testing.assert_close(case.output.double(), expected, atol=0.03, rtol=0.01)


def test_the_limit_is_the_faster_of_copy_and_elementwise_op():
    def timings(**medians: float) -> dict[str, Timing]:
        return {name: Timing(median, median, median, 3) for name, median in medians.items()}

    for limits in ({"copy": 4.0, "elementwise": 2.0}, {"copy": 2.0}, {"elementwise": 2.0}):
        measurement = Measurement(WORKLOADS[0], timings(kernels=8.0, **limits), {}, {})
        assert measurement.share_of_limit() == 0.25


def test_contenders_take_turns():
    order: list[str] = []
    repeated = {name: Repeated([lambda name=name: order.append(name)], "cpu") for name in "ab"}
    order.clear()
    measured = measure(repeated)
    turns = [name for i, name in enumerate(order) if i == 0 or order[i - 1] != name]
    assert turns == ["a", "b"] * 3
    assert measured["a"].samples == 3


def test_texts():
    timings = {name: Timing(2.0, 2.0, 2.0, 3) for name in ("kernels", "torch", "copy")}
    measurements = (Measurement(WORKLOADS[0], timings, {"reference": "no"}, {}),)
    report = Report("a GPU", "cuda", "2.13", "2026-12-01", "mpskit bench", measurements)
    assert "| `3x40` | fp32 | -1 | contiguous | 2.0 | 2.0 | **1.000x** |" in (
        pull_request_table(report)
    )
    assert "1.00x torch (geometric mean)" in summary(report)
    assert "reference did not run: no" in summary(report)
    assert accuracy_table(report).startswith("| Workload |")


def test_command_prints_json_of_the_op_asked_for(tmp_path):
    file = tmp_path / "workloads.toml"
    file.write_text('[[workload]]\nshape = [2, 9]\ndim = 1\ndtype = "float32"\n')
    arguments = ["--op", "log_softmax_backward", "--workloads", str(file), "--json"]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    report = json.loads(result.output)
    assert report["op"] == "log_softmax_backward"
    assert report["measurements"][0]["workload"]["shape"] == [2, 9]


def test_an_unknown_op_is_refused_with_those_that_there_are():
    with pytest.raises(MpskitError, match="no benchmark of softmax") as error:
        find_op("softmax")
    assert "log_softmax_backward" in str(error.value.hint)


def test_a_wrong_entry_of_a_workloads_file_is_named(tmp_path):
    file = tmp_path / "workloads.toml"
    file.write_text('[[workload]]\nshape = [2, 9]\ndim = 3\ndtype = "float32"\n')
    with pytest.raises(MpskitError, match="workload 1: dim is not one of the shape's"):
        load_workloads(file)


def test_kept_figures_are_of_every_built_in_workload():
    for name in OPS:
        reports = json.loads((BENCHMARKS / f"{name}_h200.json").read_text())
        assert list(reports) == ["float32", "float16", "bfloat16"]
        for dtype, report in reports.items():
            measured = [tuple(m["workload"]["shape"]) for m in report["measurements"]]
            assert set(measured) == {w.shape for w in load_workloads()}
            assert {m["workload"]["dtype"] for m in report["measurements"]} == {dtype}


def test_every_kernel_is_run_under_compute_sanitizer(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import compute_sanitizer

    monkeypatch.setattr(compute_sanitizer, "DTYPES", (torch.float32,))
    monkeypatch.setattr(compute_sanitizer, "SHAPES", (((3, 5), 1),))
    launched = set(compute_sanitizer.exercise("cpu"))
    kernels = {
        kernel
        for op in OPS.values()
        for kernel in dir(compile_kernels(op.implementation, "cpu"))
        if "_float_" in kernel
    }
    assert kernels and kernels == launched

"""The checks of what runs have shown, each with a case in which it fails."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from proposals import (
    DECLARATIONS,
    PLAN,
    SECOND_PATCH,
    ProposalTestCase,
    bench_report,
    suite_result,
)

from mpskit.errors import MpskitError
from mpskit.pullrequest.checks import runs
from mpskit.pullrequest.evidence import load_benches, load_test_report
from mpskit.verify.reports.result import Failure, Outcomes


class ReportTest(ProposalTestCase):
    def test_passes(self) -> None:
        material = self.material(self.make_applied(), suite_result())
        self.assert_passes(runs.report_is_green(material), "4 passed on the cpu backend")
        self.assert_passes(runs.report_is_current(material), "4 files, as they are")
        self.assert_passes(runs.skips_are_declared(material), "0 skipped")
        measured = self.material(material.series, None, bench_report())
        self.assert_passes(runs.benches_are_current(measured), "4 files, as they are")

    def test_stale(self) -> None:
        series = self.make_applied(**{PLAN: self.files[PLAN] + "// Faster now.\n"})
        stale = runs.report_is_current(self.material(series, suite_result()))
        self.assert_fails(stale, f"{PLAN} has changed since the report")
        self.assertNotIn("LogSoftmax.metal", stale.why)

    def test_tested_before_there_was_that_file(self) -> None:
        tested = suite_result().patch_files
        del tested[PLAN]
        material = self.material(self.make_applied(), suite_result(patch_files=tested))
        self.assert_fails(runs.report_is_current(material), f"{PLAN} was not tested")

    def test_measured_from_other_sources(self) -> None:
        series = self.make_applied(**{PLAN: self.files[PLAN] + "// Faster now.\n"})
        stale = runs.benches_are_current(self.material(series, None, bench_report()))
        self.assert_fails(stale, f"{PLAN} has changed since bench0.json")
        unsaid = dataclasses.replace(bench_report(), patch_files={})
        material = self.material(series, None, unsaid)
        self.assert_fails(runs.benches_are_current(material), "bench0.json does not say which")

    def test_none(self) -> None:
        material = self.material(self.make_applied())
        self.assert_fails(runs.benches_are_current(material), "no --bench FILE")
        self.assert_fails(runs.report_is_green(material), "mpskit test --json")
        self.assert_fails(runs.report_is_current(material), "no --report FILE")
        self.assert_fails(runs.skips_are_declared(material), "no --report FILE")

    def test_not_green(self) -> None:
        series = self.make_applied()
        for changes, why in (
            ({"failures": (Failure("test_x", "wrong", "mpskit test -k x"),)}, "test_x failed"),
            ({"chosen": ("-k", "float16")}, "a part of the suite only: -k float16"),
            ({"launches": {"log_softmax_float_u32": 1}}, "log_softmax_row was never launched"),
            ({"tests": {}}, "no test passed"),
        ):
            with self.subTest(why):
                material = self.material(series, suite_result(**changes))
                self.assert_fails(runs.report_is_green(material), why)

    def test_skips(self) -> None:
        skipping = suite_result(tests={"float32": Outcomes(3, 0, 1)})
        series = self.make_applied()
        self.assert_fails(
            runs.skips_are_declared(self.material(series, skipping)), "1 skipped, 0 declared"
        )
        (self.patch_set / "pullrequest.toml").write_text(
            DECLARATIONS.replace("\n    ", "\n").strip()
            + '\n[[patch.skip]]\ntest = "test_y"\nwhy = "no such device"\n'
        )
        self.assert_passes(
            runs.skips_are_declared(self.material(series, skipping)), "test_y: no such device"
        )


class BenchTest(ProposalTestCase):
    def test_passes(self) -> None:
        series = self.make_applied()
        material = self.material(series, None, bench_report())
        self.assert_passes(
            runs.latency_is_measured(material, series.commits[0]), "Apple M1 Pro GPU"
        )
        self.assert_passes(runs.nothing_is_slower(material), "2 workloads, compared with torch")

    def test_none(self) -> None:
        series = self.make_applied()
        material = self.material(series)
        self.assert_fails(runs.latency_is_measured(material, series.commits[0]), "no --bench")
        self.assert_fails(runs.nothing_is_slower(material), "no --bench")

    def test_another_op(self) -> None:
        self.files["docs/log_softmax.md"] = "It is on Metal.\n"
        series = self.make_applied(**{"series.toml": self.files["series.toml"] + SECOND_PATCH})
        material = self.material(series, None, bench_report())
        self.assert_fails(
            runs.latency_is_measured(material, series.commits[1]), "does not know the op"
        )

    def test_another_device_is_named(self) -> None:
        series = self.make_applied()
        material = self.material(series, None, bench_report(backend="cuda"))
        self.assert_passes(
            runs.latency_is_measured(material, series.commits[0]), "not on an Apple GPU"
        )

    def test_slower(self) -> None:
        series = self.make_applied()
        slower = bench_report(before=10.0, after=20.0)
        self.assert_fails(
            runs.nothing_is_slower(self.material(series, None, slower)),
            "64x1000 dim -1 float32 on Apple M1 Pro GPU: 10.0 us with torch, 20.0 us after",
        )
        noise = bench_report(before=10.0, after=10.1)
        self.assert_passes(runs.nothing_is_slower(self.material(series, None, noise)))
        (self.patch_set / "pullrequest.toml").write_text(
            'format = 1\n[[patch]]\nname = "forward"\n'
            '[[patch.slower]]\nworkload = "*float32"\nwhy = "two launches"\n'
        )
        self.assert_passes(runs.nothing_is_slower(self.material(series, None, slower)))


def test_several_runs_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    file.write_text(json.dumps({name: bench_report(30.0).to_json() for name in ("a", "b")}))
    assert [bench.report for bench in load_benches(file)] == [bench_report(30.0)] * 2


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    report, bench = tmp_path / "report.json", tmp_path / "bench.json"
    report.write_text(json.dumps(suite_result().to_json()))
    bench.write_text(json.dumps(bench_report().to_json()))
    assert load_test_report(report).result == suite_result()
    assert [item.report for item in load_benches(bench)] == [bench_report()]


@pytest.mark.parametrize("load", [load_test_report, load_benches])
@pytest.mark.parametrize("content", ["", "[]", "{}", "not JSON", '{"tests": 1}'])
def test_other_files_are_refused(load, content: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(content)
    with pytest.raises(MpskitError, match="is not what"):
        load(file)
    with pytest.raises(MpskitError, match="cannot be read"):
        load(tmp_path / "missing.json")

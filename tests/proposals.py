"""A small series that is fit for a pull request, and runs to go with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from checkouts import ACTIVATION, OPERATIONS, TREE, CheckoutTestCase, make_checkout, write_files

from mpskit.checkout import Checkout
from mpskit.patching import default_patch_set_directory, load_patch_set
from mpskit.pullrequest.applied import AppliedSeries, PatchCommit
from mpskit.pullrequest.checks import Material
from mpskit.pullrequest.declarations import load_declarations
from mpskit.pullrequest.evidence import load_benches, load_test_report
from mpskit.verify.accuracy import Errors
from mpskit.verify.benchmarks.run import Measurement, Report
from mpskit.verify.benchmarks.timing import Timing
from mpskit.verify.benchmarks.workloads import Workload
from mpskit.verify.reports.result import OpResult, Outcomes, SuiteResult, WorstError

KERNELS = "aten/src/ATen/native/mps/kernels"
METAL = f"{KERNELS}/LogSoftmax.metal"
HOST = f"{OPERATIONS}/LogSoftmax.mm"
PLAN = f"{OPERATIONS}/LogSoftmaxPlan.h"
UPSTREAM_TEST = "test/test_mps_log_softmax.py"
OWN = default_patch_set_directory()
SOURCES = (f"{KERNELS}/LogSoftmax.h", METAL, HOST, PLAN)
# What else mpskit compiles to put the op's kernels in its place, the backward's among them.
OTHERS = {
    path: (OWN / path).read_text()
    for pattern in ("*.metal", "*.h")
    for file in sorted((OWN / "aten").rglob(pattern))
    if (path := file.relative_to(OWN).as_posix()) not in SOURCES
}


def log_softmax(text: str) -> str:
    """A text about the op ``square`` of the other tests, about log_softmax."""
    return text.replace("square", "log_softmax").replace("Square", "LogSoftmax")


BASE = {**{path: log_softmax(text) for path, text in TREE.items()}, **OTHERS}

SERIES = f"""\
    format = 1
    name = "small"

    [[patch]]
    name = "forward"
    title = "[MPS] Move log_softmax to Metal"
    why = '''
    It compiled a graph for
    each shape.

    Fixes #1
    '''
    files = {json.dumps([*SOURCES, UPSTREAM_TEST])}

    [[patch.kernel]]
    name = "log_softmax_row"
    when = "a row fits into registers"

    [[patch.kernel]]
    name = "log_softmax_partial"
    when = "rows are long and few"

    [[patch.kernel]]
    name = "log_softmax_finalize"
    when = "after log_softmax_partial"

    [[patch.kernel]]
    name = "log_softmax"
    when = "else"

    [[patch.expects]]
    function = "_log_softmax.out"
    dispatch = {{ MPS = "log_softmax_mps_out" }}

    [[patch.edit]]
    kind = "remove_definition"
    path = "{ACTIVATION}"
    head = "TORCH_IMPL_FUNC(log_softmax_mps_out)"
    replaced_by = "{HOST}"
    """

REMOVED_INCLUDE = f"""
    [[patch.edit]]
    kind = "remove_include"
    path = "{ACTIVATION}"
    header = "ATen/ops/_log_softmax_native.h"
    uses = ['TORCH_IMPL_FUNC\\(log_softmax_mps_out\\)']
    """

SECOND_PATCH = """
    [[patch]]
    name = "notes"
    title = "[MPS] Say that log_softmax is on Metal"
    why = "For readers."
    files = ["docs/log_softmax.md"]
    """

UPSTREAM_TESTS = """\
    # Owner(s): ["module: mps"]
    import unittest

    import torch


    class TestLogSoftmax(unittest.TestCase):
        def test_each_kernel(self):
            for dtype in (torch.float32, torch.float16, torch.bfloat16):
                for shape, dim in (((4, 100), -1), ((1, 20000), -1), ((9, 5), 0)):
                    x = torch.randn(shape).to(dtype)
                    out = torch.log_softmax(x, dim)
                    sums = out.float().exp().sum(dim)
                    self.assertTrue(((sums - 1).abs() < 0.1).all())
    """

DECLARATIONS = """\
    format = 1
    labels = ["module: mps"]

    [[patch]]
    name = "forward"
    limits = ["No float64."]
    follow_ups = ["The backward."]

    [[patch.uncovered]]
    kernel = "*_u64"
    why = "it takes gigabytes"

    [[patch.fast_math]]
    path = "*.metal"
    why = "not at issue here"
    """


def patch_set_files() -> dict[str, str]:
    """The patch set, with the kernels and the plan of mpskit's own."""
    return {
        "series.toml": SERIES + REMOVED_INCLUDE,
        "pullrequest.toml": DECLARATIONS,
        **{path: (OWN / path).read_text() for path in SOURCES},
        UPSTREAM_TEST: UPSTREAM_TESTS,
    }


def source_digests() -> dict[str, str]:
    """Of the patch set's sources, as reports have them."""
    return {
        path: hashlib.sha256(text.encode()).hexdigest()
        for path, text in patch_set_files().items()
        if path.startswith("aten/")
    }


def suite_result(**changes: Any) -> SuiteResult:
    """A whole run on `patch_set_files`, all of it passed."""
    launches = {
        "log_softmax_row_float_u32": 12,
        "log_softmax_partial_half_u32": 5,
        "log_softmax_finalize_half_u32": 5,
        "log_softmax_float_u64": 8,
    }
    fields: dict[str, Any] = {
        "backend": "cpu",
        "seconds": 1.0,
        "tests": {"float32": Outcomes(3, 0, 0), "none": Outcomes(1, 0, 0)},
        "ops": {
            "log_softmax": OpResult(
                samples={"float32": 20},
                input_layouts={"contiguous": 20},
                output_layouts={"contiguous": 20},
                launches=launches,
                worst={"float32": WorstError(1.25, "float32[2, 3], dim=1")},
                cpu_worst={"float32": WorstError(1.5, "float32[2, 3], dim=1")},
            )
        },
        "launches": launches,
        "kernels": (
            "log_softmax",
            "log_softmax_finalize",
            "log_softmax_partial",
            "log_softmax_row",
        ),
        "failures": (),
        "closing_line": "4 passed",
        "patch_files": source_digests(),
    }
    return SuiteResult(**{**fields, **changes})


def bench_report(before: float = 30.0, after: float = 10.0, backend: str = "mps") -> Report:
    def timing(median: float) -> Timing:
        return Timing(median, 0.95 * median, 1.05 * median, 15)

    measurements = tuple(
        Measurement(
            Workload(shape, -1, "float32", model=model),
            {"kernels": timing(after), "torch": timing(before), "copy": timing(0.9 * after)},
            {"reference": "not here"},
            {"kernels": Errors(1.0, 0.25), "torch": Errors(2.0, 0.25)},
        )
        for shape, model in (((64, 1000), "ViT-base"), ((1, 151936), None))
    )
    about = ("Apple M1 Pro GPU", backend, "2.13.0", "2026-12-01", "mpskit bench")
    return Report(*about, measurements, patch_files=source_digests())


class ProposalTestCase(CheckoutTestCase):
    """A test with the small series, applied once ``make_applied`` is called."""

    base = BASE

    def setUp(self) -> None:
        super().setUp()
        self.root = self.directory / "base"
        self.patch_set = self.directory / "small"
        self.files = patch_set_files()
        make_checkout(self.root, self.base)

    def make_applied(self, **changes: str) -> AppliedSeries:
        """Apply the series, with ``changes`` to `files` by path, as keywords ``**{path: text}``."""
        self.files.update(changes)
        write_files(self.patch_set, self.files)
        applied = self.apply()
        self.assertEqual(applied.exit_code, 0, applied.output)
        return self.series()

    def series(self) -> AppliedSeries:
        return AppliedSeries.find(Checkout.open(self.root), load_patch_set(self.patch_set))

    def only_commit(self, **changes: str) -> PatchCommit:
        (commit,) = self.make_applied(**changes).commits
        return commit

    def material(
        self,
        series: AppliedSeries,
        result: SuiteResult | None = None,
        *benches: Report,
    ) -> Material:
        return Material(
            series,
            load_declarations(series.patch_set),
            load_test_report(self.write_json("report.json", result.to_json())) if result else None,
            tuple(
                loaded
                for i, bench in enumerate(benches)
                for loaded in load_benches(self.write_json(f"bench{i}.json", bench.to_json()))
            ),
        )

    def write_json(self, name: str, data: Mapping[str, Any]) -> Path:
        path = self.directory / name
        path.write_text(json.dumps(data))
        return path

    def assert_passes(self, check: Any, *why: str) -> None:
        self.assertEqual(check.outcome.value, "pass", check.why)
        for text in why:
            self.assertIn(text, check.why)

    def assert_fails(self, check: Any, *why: str) -> None:
        self.assertEqual(check.outcome.value, "fail", check.why)
        for text in why:
            self.assertIn(text, check.why)

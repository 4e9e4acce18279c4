"""The text of a pull request, from the series, the plan, the benchmarks and the test report."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from mpskit.markdown import markdown_table
from mpskit.pullrequest import memory
from mpskit.pullrequest.applied import PatchCommit
from mpskit.pullrequest.checks import Material
from mpskit.pullrequest.checks.branches import definitions_of, upstream_test_files
from mpskit.pullrequest.checks.runs import benches_of
from mpskit.pullrequest.evidence import Bench, Source, TestReport
from mpskit.pullrequest.footnotes import Footnotes
from mpskit.pullrequest.upstream_tests import UpstreamRun
from mpskit.verify import mps_tests
from mpskit.verify.benchmarks.report import accuracy_table, pull_request_table, summary
from mpskit.verify.benchmarks.run import TORCH
from mpskit.verify.benchmarks.workloads import BUILT_IN, Workload, load_workloads
from mpskit.verify.reports.result import OpResult, SuiteResult, split_host_name, worst_of

if TYPE_CHECKING:
    from opinfo.definition import Definition

UPSTREAM_FILE = "upstream_tests.json"
# Lines that must stay lines when a paragraph is put on one.
_OWN_LINE = re.compile(r"^\s*([-*+|#>]|\d+\.|```|    |Fixes #)")


@dataclass(frozen=True)
class PullRequest:
    """One pull request: ``text`` is Markdown whose first line is the title."""

    patch: str
    title: str
    text: str
    message: str
    upstream: UpstreamRun | None

    @property
    def body(self) -> str:
        """The text without its title."""
        return self.text.partition("\n")[2].lstrip("\n")


def upstream_json(run: UpstreamRun) -> str:
    """A run of the upstream tests as the file beside the text has it."""
    return json.dumps(run.to_json(), indent=1, sort_keys=True) + "\n"


def render(material: Material, item: PatchCommit, upstream: UpstreamRun | None) -> PullRequest:
    """The pull request of one patch of the series."""
    text = _Text(material, item, upstream).render()
    return PullRequest(item.patch.name, item.title, text, item.message, upstream)


@dataclass
class _Text:
    material: Material
    item: PatchCommit
    upstream: UpstreamRun | None
    notes: Footnotes = field(default_factory=Footnotes)

    def render(self) -> str:
        declared = self.material.declarations.of(self.item.patch.name)
        sections = [
            f"# {self.item.title}",
            *self._stack(),
            *self._motivation(),
            *self._kernels(),
            *self._coverage(),
            "## Latency",
            *self._latency(),
            "## Memory",
            *self._memory(),
            "## Accuracy",
            *self._accuracy(),
            "## Test plan",
            *self._test_plan(),
            *_section("Known limits", [*self._limits(), *declared.limits]),
            *_section("Follow-ups", declared.follow_ups),
            f"Labels: {', '.join(f'`{label}`' for label in self.material.declarations.labels)}",
            self.notes.render(),
        ]
        return "\n\n".join(section for section in sections if section) + "\n"

    @property
    def _definitions(self) -> tuple[Definition, ...]:
        return definitions_of(self.item)

    @property
    def _report(self) -> TestReport | None:
        """The test report, where this patch's op is what the suite tests."""
        return self.material.report if self._definitions else None

    @property
    def _result(self) -> SuiteResult | None:
        return self._report.result if self._report else None

    @property
    def _benches(self) -> tuple[Bench, ...]:
        """The benchmarks of this patch's op."""
        return benches_of(self.material, self.item)

    def _report_mark(self) -> str:
        report = self._report
        return self.notes.mark(f"{report.source}: `mpskit test --json`.") if report else ""

    def _bench_mark(self, bench: Bench) -> str:
        return self.notes.mark(f"{bench.source}: `{bench.report.command}`, {bench.report.date}.")

    def _stack(self) -> Iterator[str]:
        commits = self.material.series.commits
        if len(commits) > 1:
            yield "Stack, from the bottom:"
            yield _bullets(
                f"**{each.title}** (this one)" if each is self.item else each.title
                for each in commits
            )

    def _motivation(self) -> Iterator[str]:
        yield "## Why"
        yield unwrapped(self.item.message.partition("\n")[2].strip())

    def _kernels(self) -> Iterator[str]:
        uses, result = self.item.patch.kernels, self._result
        if not uses:
            return
        mark = self.notes.mark(f"`series.toml`, patch `{self.item.patch.name}`.")
        yield f"## Kernels{mark}"
        head = ["Kernel", "When the plan launches it"]
        rows = [[f"`{use.name}`", use.when] for use in uses]
        if result:
            head.append(f"Launches in the suite{self._report_mark()}")
            for row, use in zip(rows, uses, strict=True):
                row.append(str(result.launches_by_kernel.get(use.name, 0)))
        yield markdown_table(head, rows, left=(0, 1))

    @property
    def _seen(self) -> list[OpResult]:
        """What the suite has seen of the patch's ops."""
        ops = self._result.ops if self._result else {}
        return [ops[each.name] for each in self._definitions if each.name in ops]

    def _coverage(self) -> Iterator[str]:
        if not self._seen:
            return
        samples = _total(op.samples for op in self._seen)
        dtypes = [f"{dtype} ({count} samples)" for dtype, count in samples.items()]
        launches = _total(op.launches for op in self._seen)
        widths = sorted({split_host_name(name)[2] for name in launches})
        groups = [op.variant_test_name for each in self._definitions for op in each.ours]
        yield f"## Dtypes and layouts{self._report_mark()}"
        yield _bullets(
            [
                f"dtypes: {', '.join(dtypes)}",
                f"index widths: {', '.join(widths)}",
                f"inputs: {', '.join(_total(op.input_layouts for op in self._seen))}",
                f"results: {', '.join(_total(op.output_layouts for op in self._seen))}",
                f"samples besides PyTorch's own: "
                f"{', '.join(name.replace('_', ' ') for name in dict.fromkeys(groups))}",
            ]
        )

    def _latency(self) -> Iterator[str]:
        if not self._benches:
            yield "Not measured."
        for bench in self._benches:
            report = bench.report
            mark = self._bench_mark(bench)
            yield f"{report.device}, {_what_was_compared(bench)}{mark}"
            yield pull_request_table(report, bench.baseline).partition("\n\n")[0]
            yield _bullets(summary(report))

    def _memory(self) -> Iterator[str]:
        root = self.item.checkout.root
        function = next(
            filter(memory.is_known, map(attrgetter("function"), self._definitions)), None
        )
        if function is None:
            yield "Not counted: mpskit cannot ask this op's plan."
            return
        workloads, origin = self._workloads()
        header = memory.plan_header(root, function)
        source = Source.of(header, header.read_bytes())
        mark = self.notes.mark(f"{source}, asked about the workloads of {origin}.")
        rows = [
            (
                f"`{'x'.join(map(str, each.workload.shape))}`",
                each.workload.dtype,
                each.workload.dim,
                each.workload.layout.replace("_", " "),
                each.branch,
                byte_size(each.result),
                byte_size(each.temporaries),
            )
            for each in memory.allocations(root, function, workloads)
        ]
        yield (
            f"What the op allocates on a GPU of {memory.CORES} cores: its result and, where rows "
            f"are split, partial results.{mark}"
        )
        yield markdown_table(
            ("Shape", "Dtype", "Dim", "Layout", "Branch", "Result", "Temporaries"),
            rows,
            left=(0, 1, 3, 4),
        )

    def _workloads(self) -> tuple[list[Workload], str]:
        measured = [m.workload for bench in self._benches for m in bench.report.measurements]
        if not measured:
            return load_workloads(), f"mpskit's `{BUILT_IN.name}`"
        names = ", ".join(f"`{bench.source.name}`" for bench in self._benches)
        return list(dict.fromkeys(measured)), names

    def _accuracy(self) -> Iterator[str]:
        benches = list(filter(_has_errors, self._benches))
        if not self._seen and not benches:
            yield "Not measured."
        if self._seen:
            mark = self._report_mark()
            yield (
                "Largest errors against a float64 reference, over the suite's samples, beside "
                f"those of torch's CPU kernel on the samples that it takes.{mark}"
            )
            samples = _total(op.samples for op in self._seen)
            cpu = worst_of(op.cpu_worst for op in self._seen)
            rows = [
                (
                    dtype,
                    samples[dtype],
                    _ulp(worst.ulp),
                    _ulp(cpu[dtype].ulp) if dtype in cpu else "",
                    f"`{worst.sample}`",
                )
                for dtype, worst in worst_of(op.worst for op in self._seen).items()
            ]
            head = ("Dtype", "Samples", "Max ULP", "CPU's", "In sample")
            yield markdown_table(head, rows, left=(0, 4))
        for bench in benches:
            mark = self._bench_mark(bench)
            yield f"Against float64, over the benchmark's workloads.{mark}"
            yield accuracy_table(bench.report)

    def _test_plan(self) -> Iterator[str]:
        tests = upstream_test_files(self.item)
        commands = [" ".join(("python", path, *_classes(self.item, path))) for path in tests]
        if self._report:
            commands.append("mpskit test --patch-set .")
        yield "```\n" + "\n".join(commands or ["# no test is added"]) + "\n```"
        if self.upstream is not None:
            yield self._upstream_sentence(self.upstream, tests)
        if self._result is not None:
            yield self._suite_sentence(self._result)
            yield _outcomes_table(self._result)

    def _upstream_sentence(self, run: UpstreamRun, tests: list[str]) -> str:
        content = upstream_json(run).encode()
        mark = self.notes.mark(f"{Source.of(Path(UPSTREAM_FILE), content)}.")
        failed = len(run.problems)
        watched = (
            f" Every branch also ran under the sanitizer: {run.sanitized} launches, "
            f"{len(run.reports)} reports."
            if run.sanitized
            else ""
        )
        return (
            f"{', '.join(f'`{path}`' for path in tests)}: {run.tests} tests with the kernels in "
            f"place on mpskit's {run.backend} backend, {failed} failed or skipped, "
            f"{sum(run.launches.values())} launches.{watched}{mark}"
        )

    def _suite_sentence(self, result: SuiteResult) -> str:
        return (
            f"PyTorch's OpInfo samples and more, on the unmodified Metal source "
            f"(mpskit's {result.backend} backend), each against a float64 reference: "
            f"{result.passed} passed, {result.failed} failed, {result.skipped} skipped."
            f"{self._report_mark()}"
        )

    def _limits(self) -> Iterator[str]:
        if not self._definitions:
            return
        backends = sorted({run.backend for run in (self._result, self.upstream) if run})
        if "mps" not in backends:
            where = f"mpskit's {' and '.join(backends)} backend" if backends else "nothing yet"
            yield f"Not run on an Apple GPU: the Metal source ran on {where}."
        if not any(bench.report.backend == "mps" for bench in self._benches):
            yield "No latency from an Apple GPU."


def _what_was_compared(bench: Bench) -> str:
    backend = bench.report.backend
    if backend == "mps":
        return "before and after on MPS."
    before = (
        f"torch's own {backend} kernel"
        if bench.baseline == TORCH
        else "a plain Metal design that reads each row three times"
    )
    return (
        f"not an Apple GPU: before is {before}, after the patch's Metal source on mpskit's "
        f"{backend} backend."
    )


def _total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The counts of several ops together, in the order of their names."""
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items()))


def _has_errors(bench: Bench) -> bool:
    return any(item.errors for item in bench.report.measurements)


def _classes(item: PatchCommit, path: str) -> list[str]:
    """The test classes to run of a file, where the patch adds some to one of PyTorch's own."""
    return mps_tests.classes_of(item.patch) if path == mps_tests.PATH else []


def _outcomes_table(result: SuiteResult) -> str:
    rows = [
        (dtype, outcomes.passed, outcomes.failed, outcomes.skipped, result.samples.get(dtype, ""))
        for dtype, outcomes in result.tests.items()
    ]
    return markdown_table(("Dtype", "Passed", "Failed", "Skipped", "Samples compared"), rows)


def unwrapped(text: str) -> str:
    """``text`` with each paragraph on one line, since GitHub keeps the line breaks of a body."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.split("\n")
        own = any(_OWN_LINE.match(line) for line in lines)
        paragraphs.append(paragraph if own else " ".join(line.strip() for line in lines))
    return "\n\n".join(paragraphs)


def byte_size(count: int) -> str:
    """``128 B``, ``2.5 KiB``, ``1024 MiB``."""
    if count < 1024:
        return f"{count} B"
    unit, divisor = ("KiB", 2**10) if count < 2**20 else ("MiB", 2**20)
    size = count / divisor
    return f"{size:.4g} {unit}" if size < 1000 else f"{size:.0f} {unit}"


def _ulp(value: float) -> str:
    return f"{value:.2f}" if isfinite(value) else "infinite"


def _section(title: str, items: Sequence[str]) -> list[str]:
    return [f"## {title}", _bullets(items)] if items else []


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)

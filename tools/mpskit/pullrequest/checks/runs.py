"""Checks of what runs have shown: the suite's report and the benchmarks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from mpskit.pullrequest.applied import PatchCommit
from mpskit.pullrequest.checks.branches import definitions_of
from mpskit.pullrequest.checks.check import Check, Material, failed, judged, passed
from mpskit.pullrequest.declarations import exempt
from mpskit.pullrequest.evidence import Bench
from mpskit.verify.benchmarks.run import OURS
from mpskit.verify.tested import source_digests


def report_is_green(material: Material) -> Check:
    """A whole run of the suite passed and launched every kernel that the series declares."""
    name = "OpInfo report"
    if material.report is None:
        return failed(
            name, "no --report FILE; make one: mpskit test --json --patch-set CHECKOUT > FILE"
        )
    result = material.report.result
    problems = [f"{failure.test} failed" for failure in result.failures]
    if result.chosen:
        problems.append(f"a part of the suite only: {shlex.join(result.chosen)}")
    counts = result.launches_by_kernel
    declared = [use.name for item in material.series.commits for use in item.patch.kernels]
    problems += [f"{kernel} was never launched" for kernel in declared if not counts.get(kernel)]
    if not result.passed:
        problems.append("no test passed")
    found = f"{result.passed} passed on the {result.backend} backend"
    return judged(name, problems, found)


def report_is_current(material: Material) -> Check:
    """The sources that the suite has tested are those of the patch set."""
    name = "tested sources"
    if material.report is None:
        return failed(name, "no --report FILE")
    tested = material.report.result.patch_files
    current = source_digests(material.series.patch_set)
    problems = [
        f"{path} has changed since the report" if path in tested else f"{path} was not tested"
        for path, digest in current.items()
        if tested.get(path) != digest
    ]
    return judged(name, problems, f"{len(current)} files, as they are")


def benches_are_current(material: Material) -> Check:
    """The sources that the benchmarks have measured are those of the patch set."""
    name = "measured sources"
    if not material.benches:
        return failed(name, "no --bench FILE")
    current = source_digests(material.series.patch_set)
    changed: dict[str, set[str]] = {bench.source.name: set() for bench in material.benches}
    problems = []
    for bench in material.benches:
        measured = bench.report.patch_files
        if not measured:
            problems.append(f"{bench.source.name} does not say which sources it measured")
        changed[bench.source.name] |= {
            path for path, digest in measured.items() if current.get(path, digest) != digest
        }
    for file, paths in changed.items():
        if paths:
            verb = "has" if len(paths) == 1 else "have"
            problems.append(f"{', '.join(sorted(paths))} {verb} changed since {file}")
    count = len({path for bench in material.benches for path in bench.report.patch_files})
    return judged(name, problems, f"{count} files, as they are")


def skips_are_declared(material: Material) -> Check:
    """No more tests are skipped than the patches give reasons for."""
    name = "skipped tests"
    if material.report is None:
        return failed(name, "no --report FILE")
    declared = [
        entry
        for item in material.series.commits
        for entry in material.declarations.of(item.patch.name).skip
    ]
    skipped = material.report.result.skipped
    if skipped > len(declared):
        return failed(name, f"{skipped} skipped, {len(declared)} declared with a reason")
    reasons = "".join(f"; {entry.subject}: {entry.why}" for entry in declared)
    return passed(name, f"{skipped} skipped, {len(declared)} declared{reasons}")


def benches_of(material: Material, item: PatchCommit) -> tuple[Bench, ...]:
    """The benchmarks of the patch's op."""
    names = {name for each in definitions_of(item) for name in (each.name, each.function)}
    return tuple(bench for bench in material.benches if bench.function in names)


def latency_is_measured(material: Material, item: PatchCommit) -> Check:
    """There is a benchmark with its baseline beside the patch's kernels."""
    name, patch = "latency measured", item.patch.name
    if not definitions_of(item):
        return failed(name, "mpskit does not know the op", patch)
    benches = benches_of(material, item)
    if not benches:
        return failed(
            name, "no --bench FILE of the op; make one: mpskit bench --json > FILE", patch
        )
    problems = [
        f"{bench.source.name} has no timings of {bench.baseline}"
        for bench in benches
        if not any(bench.baseline in each.timings for each in bench.report.measurements)
    ]
    devices = ", ".join(dict.fromkeys(bench.report.device for bench in benches))
    on_a_mac = any(bench.report.backend == "mps" for bench in benches)
    found = devices if on_a_mac else f"{devices}; not on an Apple GPU"
    return judged(name, problems, found, patch)


def nothing_is_slower(material: Material) -> Check:
    """No workload takes longer than with the benchmark's baseline, unless declared."""
    name = "no shape slower"
    if not material.benches:
        return failed(name, "no --bench FILE")
    problems = [problem for bench in material.benches for problem in _slower(material, bench)]
    count = sum(len(bench.report.measurements) for bench in material.benches)
    baselines = ", ".join(dict.fromkeys(bench.baseline for bench in material.benches))
    return judged(name, problems, f"{count} workloads, compared with {baselines}")


def _slower(material: Material, bench: Bench) -> Iterator[str]:
    declared = [
        entry
        for item in material.series.commits
        for entry in material.declarations.of(item.patch.name).slower
    ]
    for item in bench.report.measurements:
        speed_up = item.speed_up(bench.baseline)
        if speed_up is None or speed_up >= 1 or exempt(item.workload.name, declared):
            continue
        before, after = item.timings[bench.baseline], item.timings[OURS]
        # Where the middle 80 % of both runs' samples overlap, the difference is noise.
        if after.low > before.high:
            yield (
                f"{item.workload.name} on {bench.report.device}: {before.median:.1f} us with "
                f"{bench.baseline}, {after.median:.1f} us after"
            )

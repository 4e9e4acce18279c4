"""Checks that the applied patch set builds, target by target."""

from __future__ import annotations

from mpskit.building import Context, Outcome, Subject, TargetResult, build, default_out
from mpskit.pullrequest.applied import AppliedSeries
from mpskit.pullrequest.checks.check import Check, failed, not_run, passed

TARGETS = ("codegen", "kernels", "host")


def skipped() -> list[Check]:
    """The checks of a run that leaves the build out."""
    return [not_run(_name(target), "left out by --skip-build") for target in TARGETS]


def builds(series: AppliedSeries) -> list[Check]:
    """Builds every target and says what came out of each."""
    subject = Subject.find(series.checkout, series.patch_set)
    result = build(Context(subject, default_out(subject.root)), TARGETS)
    return [_check(target) for target in result.targets]


def _name(target: str) -> str:
    return f"build: {target}"


def _check(result: TargetResult) -> Check:
    name = _name(result.target)
    if result.outcome is Outcome.UNAVAILABLE:
        return not_run(name, result.unavailable)
    wrong = [step for step in result.steps if not step.passed]
    if wrong:
        return failed(name, "; ".join(f"{s.name}: {' '.join(s.messages)}" for s in wrong))
    return passed(name, ", ".join(step.name for step in result.steps) or "nothing to build")

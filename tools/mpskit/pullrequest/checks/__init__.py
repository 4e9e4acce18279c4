"""The checks of a pull request, each a small object with an outcome and a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mpskit.pullrequest.applied import PatchCommit
from mpskit.pullrequest.checks import branches, builds, commits, runs, style, texts
from mpskit.pullrequest.checks.check import Check, Material, Outcome
from mpskit.pullrequest.upstream_tests import UpstreamRun

__all__ = ["Check", "Findings", "Material", "Outcome", "Scope", "check"]


@dataclass(frozen=True)
class Scope:
    """What to check against, and what to leave out because it takes long.

    Attributes:
        base: a commit that the series must apply to; None for the one that it was applied to.
        build: whether to build.
        run: whether to run the upstream tests and the sanitizer.
        announce: called with what is being done.
    """

    base: str | None = None
    build: bool = True
    run: bool = True
    announce: Callable[[str], None] = lambda text: None


@dataclass(frozen=True)
class Findings:
    """The checks, and by patch the run of the upstream tests that some of them are made from."""

    checks: tuple[Check, ...]
    upstream: dict[str, UpstreamRun] = field(default_factory=dict)

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(item for item in self.checks if item.outcome is Outcome.FAILED)


def check(material: Material, scope: Scope) -> Findings:
    """Makes every check, those of the series first."""
    series = material.series
    scope.announce("commits")
    found = [commits.applies(series, scope.base or series.record.base), commits.alone(series)]
    scope.announce("build")
    found += builds.builds(series) if scope.build else builds.skipped()
    found += [
        runs.report_is_green(material),
        runs.report_is_current(material),
        runs.skips_are_declared(material),
        runs.benches_are_current(material),
        runs.nothing_is_slower(material),
    ]
    scope.announce("lint")
    found.append(style.lintrunner(series))
    upstream: dict[str, UpstreamRun] = {}
    for item in series.commits:
        scope.announce(item.patch.name)
        found += _of_patch(material, item)
        found += _of_runs(material, item, scope, upstream)
    return Findings(tuple(found), upstream)


def _of_patch(material: Material, item: PatchCommit) -> list[Check]:
    declared = material.declarations.of(item.patch.name)
    return [
        runs.latency_is_measured(material, item),
        texts.replaced_code(item),
        texts.fast_math(item, declared.fast_math),
        style.clang_format(item),
        commits.message(item),
        texts.form(item),
        commits.size(item),
    ]


def _of_runs(
    material: Material, item: PatchCommit, scope: Scope, upstream: dict[str, UpstreamRun]
) -> list[Check]:
    if not scope.run:
        return branches.skipped(item, "left out by --skip-tests")
    found = branches.run(item)
    if found is None:
        return branches.skipped(item, "no op that mpskit has a suite for, or no upstream test")
    upstream[item.patch.name] = found
    return branches.judge(item, found, material.declarations.of(item.patch.name).uncovered)

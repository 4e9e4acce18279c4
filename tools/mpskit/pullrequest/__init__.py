"""Pull requests for an applied series: checks, evidence, text, patch files and the ways out.

proposal = prepare(checkout, load_patch_set(), report=Path("report.json"))
proposal.findings.failed                      # the checks that stand in its way
write(proposal.series, proposal.requests, out)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mpskit.checkout import Checkout
from mpskit.patching import PatchSet
from mpskit.pullrequest.applied import AppliedSeries
from mpskit.pullrequest.checks import Check, Findings, Material, Outcome, Scope, check
from mpskit.pullrequest.declarations import load_declarations
from mpskit.pullrequest.evidence import load_benches, load_test_report
from mpskit.pullrequest.publishing import commands, push
from mpskit.pullrequest.rendering import PullRequest, render
from mpskit.pullrequest.writing import text_files, write

__all__ = [
    "Check",
    "Findings",
    "Material",
    "Outcome",
    "Proposal",
    "PullRequest",
    "Scope",
    "commands",
    "prepare",
    "push",
    "text_files",
    "write",
]


@dataclass(frozen=True)
class Proposal:
    """A series with what the checks found, and a pull request for each of its patches."""

    material: Material
    findings: Findings
    requests: tuple[PullRequest, ...]

    @property
    def series(self) -> AppliedSeries:
        return self.material.series


def prepare(
    checkout: Checkout,
    patch_set: PatchSet,
    *,
    report: Path | None = None,
    benches: Iterable[Path] = (),
    scope: Scope | None = None,
) -> Proposal:
    """Checks the series that is applied on the checkout's branch, and writes its texts.

    Args:
        report: what ``mpskit test --json`` printed.
        benches: what ``mpskit bench --json`` printed, a file a run.
        scope: what to check against, and what to leave out.

    Raises:
        MpskitError: the series is not applied, or a file is not what it should be.
    """
    material = Material(
        AppliedSeries.find(checkout, patch_set),
        load_declarations(patch_set),
        load_test_report(report) if report else None,
        tuple(bench for file in benches for bench in load_benches(file)),
    )
    findings = check(material, scope or Scope())
    requests = tuple(
        render(material, item, findings.upstream.get(item.patch.name))
        for item in material.series.commits
    )
    return Proposal(material, findings, requests)

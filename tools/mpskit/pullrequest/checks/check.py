"""One check of a pull request, and what checks look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from mpskit.pullrequest.applied import AppliedSeries
from mpskit.pullrequest.declarations import Declarations
from mpskit.pullrequest.evidence import Bench, TestReport


class Outcome(str, Enum):
    """``NOT_RUN`` is a check that was asked to be left out, or that this machine cannot make."""

    PASSED = "pass"
    FAILED = "fail"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Check:
    """What was looked at, what came out, and why.

    Attributes:
        name: a few words.
        outcome: of the check.
        why: what was found; in a failed one, what is wrong and where.
        patch: the patch that it is about; empty where it is about the series.
    """

    name: str
    outcome: Outcome
    why: str
    patch: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "outcome": self.outcome.value}


@dataclass(frozen=True)
class Material:
    """What pull requests are made from."""

    series: AppliedSeries
    declarations: Declarations
    report: TestReport | None = None
    benches: tuple[Bench, ...] = ()


def passed(name: str, why: str, patch: str = "") -> Check:
    return Check(name, Outcome.PASSED, why, patch)


def failed(name: str, why: str, patch: str = "") -> Check:
    return Check(name, Outcome.FAILED, why, patch)


def not_run(name: str, why: str, patch: str = "") -> Check:
    return Check(name, Outcome.NOT_RUN, why, patch)


def judged(name: str, problems: Iterable[str], otherwise: str, patch: str = "") -> Check:
    """Failed for ``problems``; passed where there are none, for the reason ``otherwise``."""
    found = list(problems)
    return failed(name, "; ".join(found), patch) if found else passed(name, otherwise, patch)

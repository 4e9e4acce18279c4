"""What a build came to: target by target, and in each target step by step."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from mpskit.errors import MpskitError


class UnavailableError(MpskitError):
    """This machine cannot do what was asked of it, whatever the sources are like."""

    exit_code = 3


class Outcome(str, Enum):
    """``unavailable`` is a target that this machine cannot build."""

    PASSED = "passed"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class Step:
    """One thing that was built or checked.

    Attributes:
        name: what, in a few words.
        passed: whether it came out right.
        seconds: how long it took.
        detail: what was found, where it passed.
        messages: what is wrong, each with its place, where it did not.
        product: the file that it made.
    """

    name: str
    passed: bool
    seconds: float
    detail: str = ""
    messages: tuple[str, ...] = ()
    product: str | None = None


@dataclass(frozen=True)
class Built:
    """What a target's builder gives: its steps, and what their passing does not prove."""

    steps: tuple[Step, ...]
    limits: str


@dataclass(frozen=True)
class TargetResult:
    """One target: what was built, how long it took, why it could not be built, what to do next."""

    target: str
    steps: tuple[Step, ...]
    seconds: float
    limits: str = ""
    unavailable: str = ""
    hint: str | None = None

    @property
    def outcome(self) -> Outcome:
        if self.unavailable:
            return Outcome.UNAVAILABLE
        passed = all(step.passed for step in self.steps)
        return Outcome.PASSED if passed else Outcome.FAILED

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "outcome": self.outcome.value,
            "seconds": round(self.seconds, 3),
            "steps": [{**asdict(step), "seconds": round(step.seconds, 3)} for step in self.steps],
        }


@dataclass(frozen=True)
class BuildResult:
    """A whole run; ``requested`` are the targets that the user named."""

    targets: tuple[TargetResult, ...]
    requested: tuple[str, ...]
    seconds: float

    @property
    def exit_code(self) -> int:
        """0 where all passed, 1 where one failed, 3 where one was asked for and is unavailable."""
        outcomes = {result.target: result.outcome for result in self.targets}
        if Outcome.FAILED in outcomes.values():
            return 1
        if any(outcomes[name] is Outcome.UNAVAILABLE for name in self.requested):
            return UnavailableError.exit_code
        return 0

"""What every target of a build works with."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mpskit.building.process import Log
from mpskit.building.subject import Subject


def _no_announcement(text: str, done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class Context:
    """One run of a build.

    Attributes:
        subject: what is built.
        out: where products go; outside the checkout.
        log: gets what the programs print.
        announce: called with what is being done, and how much of how much of it is done.
    """

    subject: Subject
    out: Path
    log: Log = field(default_factory=Log)
    announce: Callable[[str, int, int], None] = _no_announcement


def is_mac() -> bool:
    """Whether this is macOS."""
    return platform.system() == "Darwin"

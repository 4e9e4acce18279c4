"""What can go wrong between Metal source and a finished launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpskit.errors import MpskitError

if TYPE_CHECKING:
    from mpskit.metal.frontend.tokens import Location


@dataclass(frozen=True)
class Diagnostic:
    """One message about the user's source; ``severity`` is error, warning or note."""

    location: Location
    severity: str
    message: str

    def __str__(self) -> str:
        return f"{self.location}: {self.severity}: {self.message}"


class CompileError(MpskitError):
    """The source does not compile; ``diagnostics`` says where and why."""

    def __init__(self, diagnostics: Sequence[Diagnostic], *, hint: str | None = None) -> None:
        super().__init__("\n".join(map(str, diagnostics)), hint=hint)
        self.diagnostics = tuple(diagnostics)


class LaunchError(MpskitError):
    """A kernel was called with arguments, a grid or a threadgroup that it cannot take."""

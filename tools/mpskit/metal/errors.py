"""What can go wrong between Metal source and a finished launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpskit.errors import MpskitError


@dataclass(frozen=True, order=True)
class Location:
    """A place in a file of the user's; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Diagnostic:
    """One message about the user's source.

    ``severity`` is error, warning or note. ``rule`` names the lint's rule, where one speaks (see
    `mpskit.metal.lint`); otherwise the message is a compiler's.
    """

    location: Location
    severity: str
    message: str
    rule: str = ""

    def __str__(self) -> str:
        rule = f" [{self.rule}]" if self.rule else ""
        return f"{self.location}: {self.severity}: {self.message}{rule}"


class CompileError(MpskitError):
    """The source does not compile; ``diagnostics`` says where and why."""

    def __init__(self, diagnostics: Sequence[Diagnostic], *, hint: str | None = None) -> None:
        super().__init__("\n".join(map(str, diagnostics)), hint=hint)
        self.diagnostics = tuple(diagnostics)


class LaunchError(MpskitError):
    """A kernel was called with arguments, a grid or a threadgroup that it cannot take."""


class KernelFaultError(MpskitError):
    """A thread of a kernel did what would have ended the process: the message says which."""


class KernelTimeoutError(MpskitError):
    """A kernel did not end within its time limit."""

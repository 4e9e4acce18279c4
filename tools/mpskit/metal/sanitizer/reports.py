"""Reports of the sanitizer: one for each mistake in the source, however often it happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from mpskit.errors import MpskitError

MAX_REPORTS = 20

Position = tuple[int, int, int]


class Check(str, Enum):
    """What was checked; the values are the names that reports print."""

    OUT_OF_BOUNDS = "out-of-bounds"
    RACE_IN_THREADGROUP = "race-in-threadgroup"
    RACE_ACROSS_THREADGROUPS = "race-across-threadgroups"
    UNWRITTEN_THREADGROUP_MEMORY = "unwritten-threadgroup-memory"
    BARRIER_DIVERGENCE = "barrier-divergence"
    SIMD_DIVERGENCE = "simd-divergence"
    READ_ONLY_WRITE = "read-only-write"
    MISALIGNED_ACCESS = "misaligned-access"


@dataclass(frozen=True)
class Line:
    """A line of the user's source; number 0 where the compiler left no trace of it."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


@dataclass(frozen=True)
class Access:
    """One thread's access to memory, or its meeting with others.

    Attributes:
        kind: ``read``, ``write``, ``atomic read`` or ``atomic write``.
        bytes: of the machine's access, which may be a part of the source's; 0 for a meeting or an
            index.
        thread: its position in the threadgroup.
    """

    kind: str
    bytes: int
    line: Line
    thread: Position
    threadgroup: Position

    def __str__(self) -> str:
        return f"{self.line}: {self.kind} by thread {self.thread} of threadgroup {self.threadgroup}"


@dataclass(frozen=True)
class Absence:
    """Threads that did not come where others met; ``first`` and ``last`` index the threadgroup."""

    what: str
    first: int
    last: int
    count: int
    line: Line | None

    def __str__(self) -> str:
        who = f"thread {self.first}"
        if self.count > 1:
            who = f"threads {self.first} to {self.last}"
            if self.count != self.last - self.first + 1:
                who = f"{self.count} of {who}"
        return f"{self.line}: {who} {self.what}" if self.line else f"{who} {self.what}"


@dataclass(frozen=True)
class Report:
    """One mistake, as it happened for the first time.

    Attributes:
        file: of the user's, and the line in it.
        variable: a buffer or ``threadgroup`` variable; None where no memory is concerned, or such
            as belongs to none.
        space: ``device``, ``constant`` or ``threadgroup``.
        index: the element's, in the parameter's, variable's or array's own elements.
        other: of a race, the access that came first.
        absences: of divergence, where the other threads were.
        details: what else there is to say, a sentence each.
    """

    check: Check
    kernel: str
    file: str
    line: int
    variable: str | None
    space: str | None
    index: int | None
    thread: Position
    threadgroup: Position
    access: Access
    other: Access | None = None
    absences: tuple[Absence, ...] = ()
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.file}:{self.line}: {self.check.value}: {_TITLES[self.check]}"]
        where = f"kernel '{self.kernel}'"
        if self.variable is not None:
            kind = "threadgroup variable" if self.space == "threadgroup" else "buffer"
            where += f", {kind} '{self.variable}', element {self.index}"
        lines.append(where)
        if self.check not in (Check.BARRIER_DIVERGENCE, Check.SIMD_DIVERGENCE):
            lines.append(str(self.access))
        else:
            lines.append(f"thread {self.thread} of threadgroup {self.threadgroup} was there")
        if self.other:
            lines.append(f"{self.other}, before that")
        lines += map(str, self.absences)
        lines += self.details
        return "\n  ".join(lines)


_TITLES = {
    Check.OUT_OF_BOUNDS: "access outside a buffer or variable",
    Check.RACE_IN_THREADGROUP: "data race between threads of a threadgroup",
    Check.RACE_ACROSS_THREADGROUPS: "data race between threadgroups",
    Check.UNWRITTEN_THREADGROUP_MEMORY: "read of threadgroup memory that nobody has written",
    Check.BARRIER_DIVERGENCE: "barrier that not every thread reaches",
    Check.SIMD_DIVERGENCE: "simdgroup operation in divergent flow",
    Check.READ_ONLY_WRITE: "write to a read-only buffer",
    Check.MISALIGNED_ACCESS: "misaligned access",
}


class SanitizerError(MpskitError):
    """A kernel ran and did something that it must not.

    Attributes:
        reports: in the order in which they happened first.
        total: how many there were before the list was cut to ``MAX_REPORTS``.
        fault: what ended the kernel early, or None.
    """

    def __init__(self, reports: Iterable[Report], *, fault: str | None = None) -> None:
        every = distinct(reports)
        self.reports: tuple[Report, ...] = tuple(every[:MAX_REPORTS])
        self.total = len(every)
        self.fault = fault
        parts = [f"The sanitizer has {_count(self.total, 'report')}."]
        parts += map(str, self.reports)
        if self.total > len(self.reports):
            parts.append(f"… and {self.total - len(self.reports)} more.")
        if fault:
            parts.append(f"The kernel did not come to its end: {fault}.")
        super().__init__("\n".join(parts))


def distinct(reports: Iterable[Report]) -> list[Report]:
    """The first report of each check on each variable at each line, or pair of lines."""
    first: dict[object, Report] = {}
    for report in reports:
        lines: Sequence[Line] = [report.access.line]
        if report.other:
            lines = [report.access.line, report.other.line]
        key = (report.check, report.kernel, report.variable, frozenset(lines))
        first.setdefault(key, report)
    return list(first.values())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

"""Branches and loops of a function's body."""

from __future__ import annotations

from dataclasses import dataclass

from mpskit.metal.frontend.structure import Program, Run

_CONTROL = frozenset({"if", "for", "while", "switch", "else", "do"})


@dataclass(frozen=True)
class Branch:
    """An ``if``: its condition, what it guards, and its ``else``."""

    condition: Run
    then: Run
    otherwise: Run | None


class Statements:
    """The control flow of one body, as runs of tokens."""

    def __init__(self, program: Program, body: Run) -> None:
        self._program = program
        self._body = body
        self._ends: dict[int, int] = {}
        self.branches: list[Branch] = []
        self.loops: list[Run] = []
        # From the last to the first, so that what a statement contains is known already.
        for index in reversed(body):
            if program.text(index) in _CONTROL:
                self._ends[index] = self._read(index)

    def _read(self, index: int) -> int:
        keyword = self._program.text(index)
        begin = index + 1
        if keyword in ("else", "do"):
            end = self.end(begin)
            if keyword == "do":
                self.loops.append(Run(begin, end))
            return end
        if self._program.text(begin) == "constexpr":
            begin += 1
        if self._program.text(begin) != "(":
            return begin
        closing = self._program.close(begin)
        inner = Run(closing + 1, self.end(closing + 1))
        if keyword in ("for", "while"):
            self.loops.append(inner)
        if keyword != "if":
            return inner.end
        otherwise = None
        if self._program.text(inner.end) == "else":
            otherwise = Run(inner.end + 1, self.end(inner.end + 1))
        self.branches.append(Branch(Run(begin + 1, closing), inner, otherwise))
        return otherwise.end if otherwise else inner.end

    def end(self, index: int) -> int:
        """Where the statement that begins at a token ends."""
        if index in self._ends:
            return self._ends[index]
        if self._program.text(index) == "{":
            return self._program.close(index) + 1
        while index < self._body.end and self._program.text(index) != ";":
            opens = self._program.text(index) in ("(", "[", "{")
            index = self._program.close(index) + 1 if opens else index + 1
        return min(index + 1, self._body.end)

    def is_in_loop(self, index: int) -> bool:
        """Whether a token lies in a loop's body."""
        return any(index in loop for loop in self.loops)

    def exclude_each_other(self, first: int, second: int) -> bool:
        """Whether two tokens lie in the two arms of one ``if``."""
        return any(
            branch.otherwise is not None and first in branch.then and second in branch.otherwise
            for branch in self.branches
        )


def end_of_expression(program: Program, index: int, end: int) -> int:
    """The ``;`` or ``,`` behind the expression that begins at a token."""
    while index < end and program.text(index) not in (";", ","):
        opens = program.text(index) in ("(", "[", "{")
        index = program.close(index) + 1 if opens else index + 1
    return index

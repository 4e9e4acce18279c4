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


@dataclass(frozen=True)
class Loop:
    """A loop or ``switch``: all between its parentheses, its condition, and its body."""

    keyword: str
    header: Run
    condition: Run
    body: Run


class Statements:
    """The control flow of one body, as runs of tokens.

    ``branches``, ``loops`` and ``switches`` are by the index of their keyword.
    """

    def __init__(self, program: Program, body: Run) -> None:
        self._program = program
        self._body = body
        self._ends: dict[int, int] = {}
        self.branches: dict[int, Branch] = {}
        self.loops: dict[int, Loop] = {}
        self.switches: dict[int, Loop] = {}
        # From the last to the first, so that what a statement contains is known already.
        for index in reversed(body):
            if program.text(index) in _CONTROL:
                self._ends[index] = self._read(index)

    def _read(self, index: int) -> int:
        keyword = self._program.text(index)
        begin = index + 1
        if keyword == "else":
            return self.end(begin)
        if keyword == "do":
            return self._do(index)
        if self._program.text(begin) == "constexpr":
            begin += 1
        if self._program.text(begin) != "(":
            return begin
        header = Run(begin + 1, self._program.close(begin))
        inner = Run(header.end + 1, self.end(header.end + 1))
        if keyword == "if":
            return self._if(index, header, inner)
        loops = self.switches if keyword == "switch" else self.loops
        loops[index] = Loop(keyword, header, self._condition(keyword, header), inner)
        return inner.end

    def _if(self, index: int, condition: Run, then: Run) -> int:
        otherwise = None
        if self._program.text(then.end) == "else":
            otherwise = Run(then.end + 1, self.end(then.end + 1))
        self.branches[index] = Branch(condition, then, otherwise)
        return otherwise.end if otherwise else then.end

    def _do(self, index: int) -> int:
        body = Run(index + 1, self.end(index + 1))
        condition = Run(body.end, body.end)
        if self._program.text(body.end) == "while" and self._program.text(body.end + 1) == "(":
            condition = Run(body.end + 2, self._program.close(body.end + 1))
        self.loops[index] = Loop("do", condition, condition, body)
        return body.end

    def _condition(self, keyword: str, header: Run) -> Run:
        """What is tested: of a `for` that is the second of three parts."""
        if keyword != "for":
            return header
        semicolons = [i for i in header if self._program.text(i) == ";"]
        if len(semicolons) != 2:
            return Run(header.end, header.end)
        return Run(semicolons[0] + 1, semicolons[1])

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
        return any(index in loop.body for loop in self.loops.values())

    def exclude_each_other(self, first: int, second: int) -> bool:
        """Whether two tokens lie in the two arms of one ``if``."""
        return any(
            branch.otherwise is not None and first in branch.then and second in branch.otherwise
            for branch in self.branches.values()
        )


def end_of_expression(program: Program, index: int, end: int) -> int:
    """The ``;``, ``,`` or closing bracket behind the expression that begins at a token."""
    while index < end and program.text(index) not in (";", ",", ")", "]", "}"):
        opens = program.text(index) in ("(", "[", "{")
        index = program.close(index) + 1 if opens else index + 1
    return index

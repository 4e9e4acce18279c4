"""Warnings about simdgroup functions that not all lanes reach."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mpskit.metal.frontend.structure import Function, Program, Run
from mpskit.metal.lint.lanes import LaneValues
from mpskit.metal.lint.rules import Finding
from mpskit.metal.lint.statements import Loop, Statements

# Joins the lanes that are there: made for branches.
_FOR_BRANCHES = re.compile(
    r"simd_is_first|simd_active_threads_mask|simd_broadcast_first|simd_is_helper_thread"
    r"|quad_is_first|quad_active_threads_mask|quad_broadcast_first|simd_ballot|quad_ballot"
)
_SIMD = re.compile(r"(?:simd|quad)_[a-z]\w*")
# What an operand of `&&` or `||` lies between; the arms of a conditional may hold one.
_ENDS = frozenset({";", ",", "(", "{", "[", "=", "return", "?", ":"})
_CLOSE = frozenset({";", ",", ")", "]", "}"})


def divergent_simd(program: Program) -> Iterator[Finding]:
    """Simdgroup functions where lanes have parted."""
    for function in program.functions:
        calls = [i for i in function.body or () if _is_call(program, i)]
        if not calls or (values := LaneValues(program, function)).is_empty:
            continue
        regions = _Flow(program, function, values).regions()
        for index, region in _innermost(calls, regions):
            line = program.source.locate(program.tokens[region.cause].start).line
            message = f"{program.text(index)} {region.what.format(line=line)}"
            yield Finding("divergent-simd", index, message)


def _is_call(program: Program, index: int) -> bool:
    name = program.text(index)
    if not _SIMD.fullmatch(name) or _FOR_BRANCHES.fullmatch(name):
        return False
    angle = program.close_angle(index + 1, len(program.tokens))
    return program.text(index + 1 if angle is None else angle + 1) == "("


@dataclass(frozen=True)
class _Region:
    """Tokens that some lanes skip, and the token that makes them."""

    run: Run
    cause: int
    what: str


def _innermost(calls: list[int], regions: list[_Region]) -> Iterator[tuple[int, _Region]]:
    """Each call that lies in a region, with the one of those that begins last."""
    waiting = sorted(regions, key=lambda region: region.run.begin, reverse=True)
    entered: list[_Region] = []
    for index in calls:
        while waiting and waiting[-1].run.begin <= index:
            entered.append(waiting.pop())
        while entered and entered[-1].run.end <= index:
            entered.pop()
        if entered:
            yield index, entered[-1]


class _Flow:
    """One pass over a function's body, from top to bottom."""

    def __init__(self, program: Program, function: Function, values: LaneValues) -> None:
        assert function.body is not None
        self._program = program
        self._body = function.body
        self._statements = Statements(program, function.body)
        self._values = values
        self._found: list[_Region] = []
        self._arms: list[Run] = []  # of branches that the pass is in, the innermost last
        self._parted: list[_Region] = []  # that the pass is in, the innermost last
        self._loops: list[Loop] = []  # and switches, likewise
        self._operators: set[int] = set()  # behind which lanes have parted
        self._lambdas: list[int] = []  # where those end that the pass is in

    def regions(self) -> list[_Region]:
        """Where lanes have parted. A first pass learns what loops change behind their heads."""
        for _ in range(2):
            self._found.clear()
            self._values.restart()
            for index in self._body:
                self._leave(index)
                self._visit(index)
            self._arms.clear()
            self._parted.clear()
            self._loops.clear()
            self._lambdas.clear()
        return self._found

    def _leave(self, index: int) -> None:
        while self._arms and self._arms[-1].end <= index:
            self._arms.pop()
        while self._parted and self._parted[-1].run.end <= index:
            self._parted.pop()
        while self._loops and self._loops[-1].body.end <= index:
            self._loops.pop()
        while self._lambdas and self._lambdas[-1] <= index:
            self._lambdas.pop()

    def _visit(self, index: int) -> None:
        text = self._program.text(index)
        if branch := self._statements.branches.get(index):
            parts = self._values.diverges(branch.condition)
            for arm in (branch.otherwise, branch.then):
                if arm is not None:
                    self._arms.append(arm)
                if arm is not None and parts:
                    self._part(arm, index, "in a branch of line {line} that not all lanes take")
        elif loop := self._statements.loops.get(index) or self._statements.switches.get(index):
            self._enter(index, loop)
        elif text in ("&&", "||", "?"):
            self._operand(index, text)
        elif text in ("return", "break", "continue"):
            self._jump(index, text)
        elif text == "{" and self._program.text(index - 1) in (")", "]"):
            self._lambda(index)
        else:
            self._values.assign(index, self._body.end, diverged=bool(self._parted))

    def _part(self, run: Run, cause: int, what: str) -> None:
        region = _Region(run, cause, what)
        self._found.append(region)
        self._parted.append(region)

    def _enter(self, index: int, loop: Loop) -> None:
        self._loops.append(loop)
        if loop.keyword == "for":
            for at in loop.header:
                self._values.assign(at, loop.header.end, diverged=False)
        if self._values.diverges(loop.condition, loop.body):
            is_switch = loop.keyword == "switch"
            what = "in the switch of line {line} in which lanes differ"
            again = "in the loop of line {line} that lanes leave at different times"
            self._part(loop.body, index, what if is_switch else again)

    def _operand(self, index: int, operator: str) -> None:
        """The right side of ``&&`` and ``||``, the arms of a conditional."""
        program = self._program
        if self._parted and self._parted[-1].cause in self._operators:
            return  # what stands to the left parts lanes for all of it
        ends = _ENDS if operator == "?" else _ENDS | {"&&", "||"}
        begin = index
        while begin > self._body.begin and program.text(begin - 1) not in ends:
            before = program.text(begin - 1)
            begin = program.open(begin - 1) if before in (")", "]", "}") else begin - 1
        if not self._values.diverges(Run(begin, index)):
            return
        end = index + 1
        stops = (
            (";", ",", ")", "]", "}") if operator == "?" else (";", ",", ")", "]", "}", "?", ":")
        )
        while end < self._body.end and program.text(end) not in stops:
            opens = program.text(end) in ("(", "[", "{")
            end = program.close(end) + 1 if opens else end + 1
        self._operators.add(index)
        what = f"behind the '{operator}' of line {{line}} that lanes differ in"
        self._part(Run(index + 1, end), index, what)

    def _jump(self, index: int, keyword: str) -> None:
        """What lanes that do not jump go on with."""
        if not self._parted:
            return
        after = self._parted[-1].run.end
        loop = self._jumped(keyword)
        what = f"after the {keyword} of line {{line}} that only some lanes take"
        if keyword == "return":
            self._behind(Run(after, self._end_of_path(after)), index, what)
        if loop is None:
            return
        # Who is left comes round again, unless the jump does no more than end this round.
        begin = after if keyword == "continue" else loop.body.begin
        if loop.keyword != "switch" and begin < loop.body.end:
            self._behind(Run(begin, loop.body.end), index, what)

    def _end_of_path(self, index: int) -> int:
        """How far control comes from a token: to the end of an arm that all leave by a return."""
        end = self._lambdas[-1] if self._lambdas else self._body.end
        arms = [arm.end for arm in self._arms if index < arm.end and self._ends_in_return(arm)]
        return min([end, *arms])

    def _ends_in_return(self, arm: Run) -> bool:
        program = self._program
        at = arm.end - 3  # behind the `}` and the last `;`
        if program.text(arm.end - 1) != "}" or program.text(arm.end - 2) != ";":
            return False
        while at > arm.begin and program.text(at) not in (";", "{", "}"):
            if program.text(at) == "return":
                return program.text(at - 1) in (";", "{", "}")
            at = program.open(at) - 1 if program.text(at) in (")", "]") else at - 1
        return False

    def _jumped(self, keyword: str) -> Loop | None:
        """The loop or switch that a jump leaves or goes on with."""
        for loop in reversed(self._loops):
            if keyword != "continue" or loop.keyword != "switch":
                return loop if not self._lambdas or loop.body.end <= self._lambdas[-1] else None
        return None

    def _behind(self, run: Run, cause: int, what: str) -> None:
        """Adds a region that is still ahead, in part or all of it."""
        if run.begin < run.end:
            self._found.append(_Region(run, cause, what))

    def _lambda(self, index: int) -> None:
        """Notes where a lambda's body ends, for its returns go no further."""
        program = self._program
        closing = index - 1
        if program.text(closing) == ")":
            closing = program.open(closing) - 1
        if program.text(closing) != "]":
            return
        before = program.tokens[program.open(closing) - 1]
        if closing < index - 1 or before.kind != "identifier":  # it is no `int a[2]{…}`
            self._lambdas.append(program.close(index))

"""Which values differ from lane to lane, as far as the text of one function shows."""

from __future__ import annotations

import bisect
import re

from mpskit.metal.frontend.structure import Function, Program, Run
from mpskit.metal.lint.statements import end_of_expression

_LANE = frozenset({"thread_index_in_simdgroup", "thread_index_in_quadgroup"})
_THREAD = frozenset(
    {"thread_index_in_threadgroup", "thread_position_in_threadgroup", "thread_position_in_grid"}
)
_GROUP = frozenset({"simdgroup_index_in_threadgroup", "quadgroup_index_in_threadgroup"})
# Calls whose result differs where an argument does: conversions and plain arithmetic.
_TRANSPARENT = re.compile(
    r"(?:u?(?:char|short|int|long)|half|bfloat|float|bool)[234]?|size_t|ptrdiff_t|u?int\d+_t"
    r"|abs|min|max|clamp|select|popcount|clz|ctz|(?:metal::)?mod"
)
_LONGEST_VALUE = 256  # tokens; what is longer was generated
_SIMD_WIDTH = 32
_SIMD_BITS = 5


class LaneValues:
    """Names whose values differ inside a simdgroup, at the place that `assign` has come to.

    ``lanes`` are those that are a lane's index. What is computed by calls or read from memory
    counts as the same for all: only what differs for certain is said to.
    """

    _attributes = _LANE | _THREAD

    def __init__(self, program: Program, function: Function) -> None:
        self._program = program
        self.lanes: set[str] = set()
        self._names: set[str] = set()
        # Where names come to differ, and where all lanes give them one value again.
        self._assigned: dict[str, list[int]] = {}
        self._evened: dict[str, list[int]] = {}
        # One value for all threads, whichever of them assigns it.
        self._shared = threadgroup_names(program, function.body) if function.body else set()
        for run in program.split(function.parameters):
            attributes = {attribute.name for attribute in program.attributes(run)}
            name = program.declared_name(run)
            if name is not None and attributes & _LANE:
                self.lanes.add(program.text(name))
            if name is not None and attributes & self._attributes:
                self._names.add(program.text(name))
        self._at_first = frozenset(self._names)

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs at all."""
        return not self._names

    def restart(self) -> None:
        """Goes back to the function's beginning, with what has been learnt of its loops."""
        self._names = set(self._at_first)

    def assign(self, index: int, end: int, *, diverged: bool) -> None:
        """Takes note of the assignment at a token, if one is there.

        Args:
            index: the token.
            end: of the function's body.
            diverged: whether some lanes leave the assignment out.
        """
        program = self._program
        text = program.text(index)
        if text not in ("=", "+=", "-=", "*=", "|=", "&=", "^=") or index < 2:
            return
        name = program.tokens[index - 1]
        if name.kind != "identifier" or program.text(index - 2) in (".", "->", "::"):
            return
        if name.text in self._shared:
            return
        end = min(end, index + _LONGEST_VALUE)
        value = Run(index + 1, end_of_expression(program, index + 1, end))
        if diverged or self.varies(value):
            self._names.add(name.text)
            _note(self._assigned, name.text, index)
        elif text == "=":
            self._names.discard(name.text)
            _note(self._evened, name.text, index)

    def varies(self, run: Run, loop: Run | None = None) -> bool:
        """Whether an expression differs from lane to lane.

        Args:
            run: the expression.
            loop: a loop's body that it is evaluated again after.
        """
        program = self._program
        index = run.begin
        while index < run.end:
            token = program.tokens[index]
            if token.text == "[":
                index = program.close(index)
            elif token.kind == "identifier" and program.text(index + 1) == "(":
                if not _TRANSPARENT.fullmatch(token.text):
                    index = program.close(index + 1)
            elif self._is_name(index, loop) and not self._is_made_uniform(index):
                return True
            index += 1
        return False

    def _is_name(self, index: int, loop: Run | None) -> bool:
        text = self._program.text(index)
        if self._program.text(index - 1) in (".", "->", "::"):
            return False
        return text in self._names or (loop is not None and self._is_assigned(text, loop))

    def _is_assigned(self, name: str, loop: Run) -> bool:
        """Whether a name differs at the end of a loop's body because of what the body does."""
        return _last(self._assigned, name, loop) > _last(self._evened, name, loop)

    def _is_made_uniform(self, index: int) -> bool:
        """Whether the part of a name's value that is used is the same in a simdgroup."""
        program = self._program
        after = index + 1
        if program.text(after) == ".":
            if program.text(after + 1) in ("y", "z"):
                return True
            after += 2
        operator, operand = program.text(after), program.text(after + 1)
        if operator == "[":
            return True
        if operator == "/":
            divisor = _number(operand)
            return divisor is None or divisor % _SIMD_WIDTH == 0
        if operator == ">" and operand == ">":
            bits = _number(program.text(after + 2))
            return bits is None or bits >= _SIMD_BITS
        return False

    def diverges(self, condition: Run, loop: Run | None = None) -> bool:
        """Whether lanes of one simdgroup differ in a condition; whole simdgroups may."""
        return any(self._part_diverges(part, loop) for part in self._parts(condition))

    def _parts(self, condition: Run) -> list[Run]:
        """What ``&&`` and ``||`` join."""
        parts, begin = [], condition.begin
        for index in condition:
            if self._program.text(index) in ("&&", "||"):
                parts.append(Run(begin, index))
                begin = index + 1
        return [*parts, Run(begin, condition.end)]

    def _part_diverges(self, part: Run, loop: Run | None) -> bool:
        texts = [self._program.text(i) for i in part]
        if "simd_is_first" in texts or "quad_is_first" in texts:
            return True
        if not self.varies(part, loop):
            return False
        if self.lanes.intersection(texts):
            return True
        # `thread < 64` leaves whole simdgroups out.
        bounds = [(text, texts[i + 1 :]) for i, text in enumerate(texts) if text in _COMPARISONS]
        return not any(_is_whole_simdgroups(bound, _COMPARISONS[c]) for c, bound in bounds)


class ThreadValues(LaneValues):
    """Names whose values differ inside a threadgroup."""

    _attributes = _LANE | _THREAD | _GROUP

    def _is_made_uniform(self, index: int) -> bool:
        return self._program.text(index + 1) == "["


def threadgroup_names(program: Program, body: Run) -> set[str]:
    """The `threadgroup` arrays and variables, not pointers, that a body declares."""
    names: set[str] = set()
    end = body.begin
    for index in body:
        if program.text(index) != "threadgroup" or index < end:
            continue
        end = end_of_expression(program, index, body.end)
        while program.text(end) == ",":
            end = end_of_expression(program, end + 1, body.end)
        items = program.split(Run(index + 1, end))
        if not items or {"*", "&"} & {program.text(i) for i in items[0]}:
            continue
        if any("atomic" in program.text(i) for i in items[0]):
            continue
        for item in items:
            if (name := program.declared_name(item)) is not None:
                names.add(program.text(name))
    return names


def _note(places: dict[str, list[int]], name: str, index: int) -> None:
    """Adds a place to a name's, which stay in order; passes over a body come to them again."""
    known = places.setdefault(name, [])
    at = bisect.bisect_left(known, index)
    if at == len(known) or known[at] != index:
        known.insert(at, index)


def _last(places: dict[str, list[int]], name: str, loop: Run) -> int:
    """The last of a name's places in a loop, or -1."""
    known = places.get(name, [])
    at = bisect.bisect_left(known, loop.end) - 1
    return known[at] if at >= 0 and known[at] >= loop.begin else -1


# What to add to a bound that itself is included, or excluded.
_COMPARISONS = {"<": 0, ">=": 0, "<=": 1, ">": 1}


def _number(text: str) -> int | None:
    match = re.fullmatch(r"(\d+)[uUlL]*", text)
    return int(match[1]) if match else None


def _is_whole_simdgroups(bound: list[str], added: int) -> bool:
    if any("simd" in text.lower() for text in bound):
        return True
    words = [text for text in bound if text not in ("(", ")")]
    number = _number(words[0]) if len(words) == 1 else None
    return number is not None and (number + added) % _SIMD_WIDTH == 0

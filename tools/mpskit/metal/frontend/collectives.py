"""Calls that end in a simdgroup operation or barrier, in the order in which the program has them.

Lanes that diverged wait at different operations. To let those inside a branch or loop catch up
with those behind it, as a GPU does, the runtime must know which operation comes first; machine
code cannot tell, since compilers move blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mpskit.metal.frontend.structure import Function, Program

_COLLECTIVE = re.compile(r"(?:simd|quad)_\w+|(?:simdgroup|threadgroup)_barrier")
# Identifiers that can stand in front of a call; any other makes it a declaration.
_BEFORE_CALL = frozenset({"return", "else", "do", "case", "and", "or", "not"})


@dataclass(frozen=True)
class Call:
    """A call's first and last token, and whether it stands in a kernel or in a function of its."""

    begin: int
    end: int
    in_kernel: bool


def collective_calls(program: Program) -> Iterator[Call]:
    """Every such call, except those through ``.`` and ``->``."""
    names = names_of_collectives(program)
    for function in program.functions:
        for index in _mentions(program, function):
            text = program.text(index)
            if (text in names or _COLLECTIVE.fullmatch(text)) and (
                call := _call(program, index, function)
            ):
                yield call


def names_of_collectives(program: Program) -> set[str]:
    """Names of the program's functions that come to a collective operation in the end."""
    callers: dict[str, set[str]] = {}
    found: list[str] = []
    for function in program.functions:
        for index in _mentions(program, function):
            callers.setdefault(program.text(index), set()).add(function.name)
            if _COLLECTIVE.fullmatch(program.text(index)):
                found.append(function.name)
    names: set[str] = set()
    while found:
        name = found.pop()
        if name not in names:
            names.add(name)
            found += callers.get(name, ())
    return names


def _mentions(program: Program, function: Function) -> Iterator[int]:
    """Identifiers in a function's body that a call could begin with."""
    for index in function.body or ():
        if program.tokens[index].kind == "identifier" and program.text(index + 1) in ("(", "<"):
            yield index


def _call(program: Program, index: int, function: Function) -> Call | None:
    opening = index + 1
    if program.text(opening) == "<":
        closing = program.close_angle(opening, len(program.tokens))
        if closing is None:
            return None
        opening = closing + 1
    if program.text(opening) != "(":
        return None
    begin = _begin_of_path(program, index)
    before = program.tokens[begin - 1]
    is_declaration = before.kind == "identifier" and before.text not in _BEFORE_CALL
    if is_declaration or before.text in (".", "->", "template"):
        return None
    return Call(begin, program.close(opening), function.is_kernel)


def _begin_of_path(program: Program, index: int) -> int:
    """Where the qualified name that ends at ``index`` begins: ``::a::b<c>::name``."""
    while program.text(index - 1) == "::":
        index -= 1
        before = program.tokens[index - 1]
        if (opening := program.open_angle(index - 1)) is not None:
            index = opening - 1
        elif before.kind == "identifier" and before.text not in _BEFORE_CALL:
            index -= 1
    return index

"""Conditional expressions whose arms need the shim's help: ``c ? x : y``.

MSL converts arms of unlike arithmetic types, such as half and float, as its other operators do. C++
refuses what converts both ways, so the second arm goes through ``mpskit::other_arm``, which
needs the type of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mpskit.metal.frontend.structure import Program, Run

_LITERALS = ("number", "character")


@dataclass(frozen=True)
class Conditional:
    """The tokens between ``?`` and its ``:``, and that colon's index."""

    first_arm: Run
    colon: int


def conditionals(program: Program) -> Iterator[Conditional]:
    """Every conditional expression whose value is used, nested ones before what they are in."""
    open_ones: list[tuple[int, int]] = []  # index of the `?`, depth of brackets it stands in
    depth = 0
    for index in range(len(program.tokens)):
        text = program.text(index)
        if text in ("(", "[", "{"):
            depth += 1
        elif text in (")", "]", "}"):
            depth -= 1
            while open_ones and open_ones[-1][1] > depth:
                open_ones.pop()
        elif text == "?":
            open_ones.append((index, depth))
        elif text == ":" and open_ones and open_ones[-1][1] == depth:
            question, _ = open_ones.pop()
            found = Conditional(Run(question + 1, index), index)
            if not found.first_arm.is_empty and _needs_help(program, question, found):
                yield found


def _needs_help(program: Program, question: int, found: Conditional) -> bool:
    arm, second = found.first_arm, found.colon + 1
    tokens = program.tokens
    if arm.end - arm.begin == 1 and tokens[arm.begin].kind in _LITERALS:
        both_literal = tokens[second].kind in _LITERALS and program.text(second + 1) in ");],}"
        return not both_literal
    return not _is_statement(program, question)


def _is_statement(program: Program, question: int) -> bool:
    """Whether the expression's value is dropped: `c ? f() : g();`, whose arms may be void."""
    index = question - 1
    while index >= 0:
        text = program.text(index)
        if text in (")", "]"):
            index = program.open(index)
        elif text in (";", "{", "}"):
            return True
        elif text in ("(", "[", ",", "=", "return", "?", ":", "<") or text.endswith("="):
            return False
        index -= 1
    return False

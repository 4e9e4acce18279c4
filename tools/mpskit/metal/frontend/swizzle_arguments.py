"""Swizzles that are passed to functions: ``f(x.xy)``.

In the shim a swizzle is a view of its vector, which a parameter of type ``vec<T, N>`` or ``T`` of a
template would not take for a vector.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpskit.metal.frontend.structure import Program, Run

_LOOK_BACK = 256  # tokens and parentheses; what is longer was generated
_NO_CALL = frozenset({"if", "while", "for", "switch", "return", "sizeof", "decltype", "alignof"})


def swizzle_arguments(program: Program) -> Iterator[Run]:
    """Arguments of calls that are a swizzle as a whole."""
    for index in program.swizzle_places:
        if program.text(index + 1) not in (",", ")"):
            continue
        begin = _begin(program, index - 1)
        if begin is not None and program.text(begin - 1) in ("(", ","):
            opening = _opening(program, begin)
            name = program.tokens[opening - 1] if opening else None
            if name and name.kind == "identifier" and name.text not in _NO_CALL:
                yield Run(begin, index + 1)


def _begin(program: Program, dot: int) -> int | None:
    """Where ``a[i].b`` begins, whose last ``.`` or ``->`` this is; None where that is unclear."""
    index = dot - 1
    while True:
        while program.text(index) in ("]", ")"):
            index = program.open(index) - 1
            if program.tokens[index].kind != "identifier" and program.text(index) not in ("]", ")"):
                return index + 1 if program.text(index) in ("(", ",") else None
        if program.tokens[index].kind != "identifier":
            return None
        if program.text(index - 1) not in (".", "->", "::"):
            return index
        index -= 2


def _opening(program: Program, index: int) -> int | None:
    """The parenthesis of the list of arguments that one begins at; None where that is far off."""
    before = index - 1
    for _ in range(_LOOK_BACK):
        text = program.text(before)
        if text in ("(", ";", "{", "}", ""):
            return before if text == "(" else None
        before = program.open(before) - 1 if text in (")", "]") else before - 1
    return None

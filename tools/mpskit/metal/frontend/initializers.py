"""Initializers in braces that Metal's compiler takes, a clang, and the shim or g++ does not.

Designators of arrays, ``float s[4] = {[0 ... 3] = -1.0f};``, become an empty initializer and one
statement each. A vector, ``uint4 key = {a, b};``, gets zeros where components are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mpskit.metal.frontend.structure import Program, Run

_VECTOR = re.compile(r"(?:bool|u?char|u?short|u?int|u?long|half|bfloat|float)[234]")


@dataclass(frozen=True)
class DesignatedArray:
    """A declaration's ``= {[first ... last] = value, …}``, and the array's name.

    Each element has the runs of its first and last index, and of its value.
    """

    name: str
    initializer: Run
    elements: Sequence[tuple[Run, Run, Run]]


def designated_arrays(program: Program) -> Iterator[DesignatedArray]:
    """Declarations in functions that declare one array with designators."""
    for function in program.functions:
        for index in function.body or ():
            if program.text(index) != "=" or program.text(index + 1) != "{":
                continue
            if program.text(index + 2) != "[" or program.is_attribute(index + 2):
                continue
            closing = program.close(index + 1)
            name = _array_name(program, index)
            elements = [_element(program, i) for i in program.split(Run(index + 2, closing))]
            if name and program.text(closing + 1) == ";" and all(elements):
                initializer = Run(index, closing + 1)
                yield DesignatedArray(name, initializer, [e for e in elements if e])


def _array_name(program: Program, assignment: int) -> str:
    """What stands in front of ``[N] =``; nothing where that is no array of one dimension."""
    if program.text(assignment - 1) != "]":
        return ""
    name = program.tokens[program.open(assignment - 1) - 1]
    return name.text if name.kind == "identifier" else ""


def _element(program: Program, run: Run) -> tuple[Run, Run, Run] | None:
    """The parts of ``[first ... last] = value`` or ``[index] = value``."""
    if program.text(run.begin) != "[":
        return None
    closing = program.close(run.begin)
    if program.text(closing + 1) != "=":
        return None
    index, value = Run(run.begin + 1, closing), Run(closing + 2, run.end)
    dots = next((i for i in index if program.text(i) == "..."), None)
    if dots is None:
        return index, index, value
    return Run(index.begin, dots), Run(dots + 1, index.end), value


@dataclass(frozen=True)
class BracedVector:
    """A vector's initializer: the vector's type, and everything from brace to brace."""

    kind: str
    braces: Run


def braced_vectors(program: Program) -> Iterator[BracedVector]:
    """Every ``float4 name = {…}`` and ``float4 name{…}`` that has components."""
    for index, token in enumerate(program.tokens):
        if token.text != "{" or program.text(index + 1) == "}":
            continue
        name = index - 2 if program.text(index - 1) == "=" else index - 1
        kind = program.text(name - 1)
        if program.tokens[name].kind == "identifier" and _VECTOR.fullmatch(kind):
            yield BracedVector(kind, Run(index, program.close(index) + 1))

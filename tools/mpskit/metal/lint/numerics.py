"""Warnings about arithmetic: errors that add up, products that overflow."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpskit.metal.frontend.structure import Function, Program, Run
from mpskit.metal.lint.rules import Finding
from mpskit.metal.lint.statements import Statements, end_of_expression

_COMPOUND = frozenset({"+=", "-=", "*=", "/="})
_ACCUMULATING = re.compile(r"simd_(?:sum|product|prefix_\w+)|atomic_fetch_add_explicit")
_LONGEST_STATEMENT = 256  # tokens; what is longer was generated
_NARROW = re.compile(r"u?(?:int|short|char)[234]?|unsigned|u?int(?:8|16|32)_t")
_GROUP_SIZES = frozenset(
    {"threads_per_threadgroup", "threads_per_simdgroup", "dispatch_threads_per_threadgroup"}
)
_WIDE = re.compile(r"u?long|size_t|u?int64_t|ptrdiff_t")


def fast_math(program: Program) -> Iterator[Finding]:
    """Calls of ``fast::`` functions whose errors add up."""
    for function in program.functions:
        if function.body is None or not _mentions(program, function, "fast"):
            continue
        statements = Statements(program, function.body)
        for index in function.body:
            if program.text(index) != "fast" or program.text(index + 1) != "::":
                continue
            name = program.text(index + 2)
            if statements.is_in_loop(index):
                yield Finding("fast-math", index, f"fast::{name} in a loop")
            elif _accumulates(program, function.body, index):
                yield Finding("fast-math", index, f"fast::{name} in a sum")


def _mentions(program: Program, function: Function, text: str) -> bool:
    return any(program.text(i) == text for i in function.body or ())


def _accumulates(program: Program, body: Run, index: int) -> bool:
    """Whether a value goes into a sum: `x += fast::f(y)`, `simd_sum(fast::f(y))`."""
    for at in range(index, max(body.begin, index - _LONGEST_STATEMENT), -1):
        if program.text(at) in (";", "{", "}"):
            return False
        if program.text(at) in _COMPOUND or _ACCUMULATING.fullmatch(program.text(at)):
            return True
    return False


def index_overflow(program: Program) -> Iterator[Finding]:
    """Products of 32-bit values that are widened when it is too late."""
    members = _member_types(program)
    for function in program.functions:
        if function.body is None:
            continue
        types = _declared_types(program, Run(function.parameters.begin, function.body.end))
        types |= dict.fromkeys(_group_sizes(program, function), "bounded")
        for index in function.body:
            widened = _widened(program, index, function.body.end)
            if widened is not None:
                product = _narrow_product(program, widened, types, members)
                if product is not None:
                    message = "a product of 32-bit values is widened to 64 bits after it overflowed"
                    yield Finding("index-overflow", product, message)


def _group_sizes(program: Program, function: Function) -> Iterator[str]:
    """Parameters with a threadgroup's size: with a position they make one in the grid at most."""
    for run in program.split(function.parameters):
        name = program.declared_name(run)
        attributes = {attribute.name for attribute in program.attributes(run)}
        if name is not None and attributes & _GROUP_SIZES:
            yield program.text(name)


def _member_types(program: Program) -> dict[str, str]:
    """Types of data members, where all of a name have the same."""
    types: dict[str, str] = {}
    for variable in program.variables:
        if variable.is_member:
            kind = _last_type(program, variable.specifiers)
            types[variable.name] = kind if types.get(variable.name, kind) == kind else ""
    return types


def _last_type(program: Program, run: Run) -> str:
    texts = [program.text(i) for i in run]
    return "" if "*" in texts else next((t for t in reversed(texts) if t.isidentifier()), "")


def _declared_types(program: Program, run: Run) -> dict[str, str]:
    """Names declared with an integer type, by that; a name of two types has none."""
    types: dict[str, str] = {}
    for index in run:
        kind = program.text(index)
        if not (_NARROW.fullmatch(kind) or _WIDE.fullmatch(kind)):
            continue
        name = index + 1
        while program.text(name) in ("&", "const", "thread", "constant"):
            name += 1
        if name < len(program.tokens) and program.tokens[name].kind == "identifier":
            text = program.text(name)
            types[text] = kind if types.get(text, kind) == kind else ""
    return types


def _widened(program: Program, index: int, end: int) -> Run | None:
    """The expression that is made 64 bits wide here, if one is."""
    if not _WIDE.fullmatch(program.text(index)):
        return None
    following = program.text(index + 1)
    if following == "(":
        return Run(index + 2, program.close(index + 1))
    if following == ">" and program.text(index - 2) == "static_cast":
        return Run(index + 3, program.close(index + 2)) if program.text(index + 2) == "(" else None
    if following == ")" and program.text(index - 1) == "(" and program.text(index + 2) == "(":
        return Run(index + 3, program.close(index + 2))
    if program.text(index + 2) == "=":
        return Run(index + 3, end_of_expression(program, index + 3, end))
    return None


def _narrow_product(
    program: Program, run: Run, types: dict[str, str], members: dict[str, str]
) -> int | None:
    """The ``*`` between two variables of 32 bits in a sum of products, None if any is wider."""
    product = None
    variables = 0
    index = run.begin
    while index < run.end:
        token = program.tokens[index]
        if token.text in ("+", "-", "%"):
            variables = 0
        elif token.text == "*":
            if variables:
                product = product if product is not None else index
        elif token.kind == "identifier":
            kind, index = _operand(program, index, types, members)
            if not _NARROW.fullmatch(kind):
                return None
            variables += 1
        elif token.kind == "number":
            if re.search(r"[lL.]", token.text):
                return None
        elif token.text not in ("(", ")"):
            return None
        index += 1
    return product if product is not None and _has_two_factors(program, run, product) else None


def _operand(
    program: Program, index: int, types: dict[str, str], members: dict[str, str]
) -> tuple[str, int]:
    """The type of a variable, member or component, and the index of its last token."""
    kind = types.get(program.text(index), "")
    while program.text(index + 1) in (".", "->"):
        index += 2
        component = program.text(index)
        is_component = len(component) == 1 and component in "xyzw" and kind
        kind = kind if is_component else members.get(component, "")
    return ("", index) if program.text(index + 1) in ("(", "[", "<", "::") else (kind, index)


def _has_two_factors(program: Program, run: Run, product: int) -> bool:
    """Whether the right factor is a variable, since a small literal rarely overflows."""
    right = next((i for i in Run(product + 1, run.end) if program.text(i) != "("), run.end)
    return right < run.end and program.tokens[right].kind == "identifier"

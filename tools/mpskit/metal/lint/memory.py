"""Address spaces and arrays: pointers to nowhere, writes to what cannot be written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpskit.metal.frontend.structure import ADDRESS_SPACES, Function, Program, Run
from mpskit.metal.lint.rules import Finding

_SCALAR = re.compile(
    r"(?:bool|u?char|u?short|u?int|u?long|half|bfloat|float|size_t|ptrdiff_t|u?int(?:8|16|32|64)_t)"
    r"[234]?|(?:half|float|bfloat)[234]x[234]"
)
_QUALIFIERS = frozenset({"const", "volatile", "static", "constexpr", "inline"}) | ADDRESS_SPACES
_ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
_CAST_BEGINS = ADDRESS_SPACES | {"const", "volatile"}
# Identifiers in front of a name that make no declaration of what follows.
_NO_TYPE = frozenset({"return", "else", "do", "case", "goto", "new", "delete", "throw", "typename"})


def missing_address_spaces(program: Program) -> Iterator[Finding]:
    """Pointers and references that do not say where they point."""
    for function in program.functions:
        if function.is_instantiation:
            continue
        for run in program.split(function.parameters):
            if (index := _pointer_to_nowhere(program, run)) is not None:
                name = program.declared_name(run)
                label = f"'{program.text(name)}'" if name is not None else "a parameter"
                kind = "pointer" if program.text(index) == "*" else "reference"
                message = f"{kind} {label} has no address space"
                yield Finding("address-space", index, message)
        yield from _in_body(program, function)


def _pointer_to_nowhere(program: Program, run: Run) -> int | None:
    """The ``*`` or ``&`` of a parameter whose type names no address space."""
    found = None
    index = run.begin
    while index < run.end and program.text(index) != "=":
        text = program.text(index)
        if text in ADDRESS_SPACES or text in ("auto", "decltype", "&&", "..."):
            return None
        if program.is_attribute(index):
            index = program.close(index)
        elif text == "(":
            closing = program.close(index)
            if program.text(closing + 1) == "(":  # a pointer to a function
                return None
            if found is None and program.text(index + 1) in ("*", "&"):
                found = index + 1
            inside = {program.text(i) for i in Run(index, closing)}
            if inside & ADDRESS_SPACES:
                return None
            index = closing
        elif closing_angle := program.close_angle(index, run.end):
            index = closing_angle
        elif text in ("*", "&") and found is None and index > run.begin:
            found = index
        index += 1
    return found


def _in_body(program: Program, function: Function) -> Iterator[Finding]:
    """Variables of built-in types: `float* p = …`; with other types it may be a product."""
    for index in function.body or ():
        if program.text(index) not in ("*", "&") or not _SCALAR.fullmatch(program.text(index - 1)):
            continue
        named = program.tokens[index + 1].kind == "identifier"
        if not named or program.text(index + 1) in ADDRESS_SPACES | {"const"}:
            continue
        begin = index - 1
        spaced = False
        while program.text(begin - 1) in _QUALIFIERS:
            begin -= 1
            spaced = spaced or program.text(begin) in ADDRESS_SPACES
        if not spaced and program.text(begin - 1) in ("{", "}", ";"):
            kind = "pointer" if program.text(index) == "*" else "reference"
            name = program.text(index + 1)
            yield Finding("address-space", index, f"{kind} '{name}' has no address space")


def writes_to_constant(program: Program) -> Iterator[Finding]:
    """Assignments to what a `constant` parameter or program-scope variable gives access to."""
    tables: dict[str, bool | None] = {
        variable.name: True
        for variable in program.variables
        if not variable.is_member and "constant" in {program.text(i) for i in variable.specifiers}
    }
    for function in program.functions:
        if function.body is None:
            continue
        names = {**tables, **_parameters(program, function)}
        for index in function.body:
            name = program.text(index)
            is_object = names.get(name)
            if is_object is None or program.text(index - 1) in (".", "->", "::"):
                continue
            if _declares(program, index):
                names.pop(name)
            elif _is_written(program, index, is_object=is_object):
                message = f"'{name}' is in the constant address space, which is read-only"
                yield Finding("write-to-constant", index, message)


def _parameters(program: Program, function: Function) -> dict[str, bool | None]:
    """For each parameter: whether it is a `constant` reference; None where it is not constant."""
    found: dict[str, bool | None] = {}
    for run in program.split(function.parameters):
        name = program.declared_name(run)
        texts = {program.text(i) for i in run}
        if name is not None:
            found[program.text(name)] = "&" in texts if "constant" in texts else None
    return found


def _declares(program: Program, index: int) -> bool:
    """Whether a local variable of this name hides the outer one from here on."""
    before = program.tokens[index - 1]
    is_type = before.kind == "identifier" and before.text not in _NO_TYPE
    return is_type or (
        before.text in ("*", "&", ">") and program.tokens[index - 2].kind == "identifier"
        and program.text(index + 1) == "=" and before.text != "*"
    )  # fmt: skip


def _is_written(program: Program, index: int, *, is_object: bool) -> bool:
    """Whether the name begins the left side of an assignment to constant memory.

    A member may be a pointer to writable memory, so what is reached through one does not count.
    """
    reached = is_object
    through_member = False
    at = index + 1
    while True:
        if program.text(at) == "[":
            if through_member:
                return False
            reached, at = True, program.close(at) + 1
        elif program.text(at) in (".", "->"):
            if program.text(at) == "->":
                if through_member:
                    return False
                reached = True
            through_member, at = True, at + 2
        else:
            break
    before = index - 1
    if program.text(before) == ")" and program.text(program.open(before) + 1) in _CAST_BEGINS:
        return False  # a pointer made of the value: `*(device float*)address = …`
    if program.text(before) == "*" and _is_operand(program, before):
        if reached:
            return False
        reached, before = True, before - 1
    stepped = program.text(at) in ("++", "--") or program.text(before) in ("++", "--")
    return reached and (program.text(at) in _ASSIGNMENTS or stepped)


def _is_operand(program: Program, star: int) -> bool:
    """Whether ``*`` dereferences, rather than multiplies."""
    return program.text(star - 1) in ("{", "}", ";", "(", ")", "=", ",", "++", "--")


def variable_length_arrays(program: Program) -> Iterator[Finding]:
    """Arrays of a function whose length comes from its parameters or variables."""
    for function in program.functions:
        if function.body is None:
            continue
        variables = {
            program.text(name)
            for run in program.split(function.parameters)
            if (name := program.declared_name(run)) is not None
        }
        for index in function.body:
            if (local := _local_variable(program, index)) is not None:
                variables.add(local)
            if program.text(index) == "[" and _declares_array(program, index):
                inside = Run(index + 1, program.close(index))
                if (used := _runtime_name(program, inside, variables)) is not None:
                    message = f"the array's length depends on the variable '{used}'"
                    yield Finding("variable-length-array", index, message)


def _local_variable(program: Program, index: int) -> str | None:
    """The name of an arithmetic variable that is declared here and is not constant."""
    if not _SCALAR.fullmatch(program.text(index)) and program.text(index) != "auto":
        return None
    begin = index
    while program.text(begin - 1) in _QUALIFIERS:
        begin -= 1
    words = {program.text(i) for i in Run(begin, index)}
    if words & {"const", "constexpr", "constant"} or program.text(begin - 1) not in "{};(":
        return None
    follows = program.text(index + 2)
    named = index + 1 < len(program.tokens) and program.tokens[index + 1].kind == "identifier"
    return program.text(index + 1) if named and follows in ("=", ";", ",") else None


def _declares_array(program: Program, opening: int) -> bool:
    name = opening - 1
    if program.tokens[name].kind != "identifier":
        return False
    kind = program.tokens[name - 1]
    if kind.text == ">" and program.open_angle(name - 1) is not None:
        return program.text(program.close(opening) + 1) in (";", "=", "{", "[", ",")
    return kind.kind == "identifier" and kind.text not in _NO_TYPE


def _runtime_name(program: Program, run: Run, variables: set[str]) -> str | None:
    index = run.begin
    while index < run.end:
        if program.text(index) in ("sizeof", "decltype") and program.text(index + 1) == "(":
            index = program.close(index + 1)
        elif program.text(index) in variables and program.text(index - 1) not in (".", "->", "::"):
            return program.text(index)
        index += 1
    return None

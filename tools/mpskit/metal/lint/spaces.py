"""Pointers and references that are given memory of another address space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mpskit.metal.frontend.structure import ADDRESS_SPACES, Function, Program, Run
from mpskit.metal.lint.rules import Finding
from mpskit.metal.lint.statements import end_of_expression

_LONGEST_VALUE = 16  # tokens; an address is shorter
# Identifiers that can stand in front of a call; any other makes it a declaration.
_BEFORE_CALL = frozenset({"return", "else", "do", "case", "and", "or", "not"})


@dataclass(frozen=True)
class _Variable:
    """Where a variable of a function lies, and where it points if it does."""

    space: str
    pointee: str = ""
    is_array: bool = False


@dataclass(frozen=True)
class _Wanted:
    """A parameter: a pointer or reference into an address space."""

    space: str
    kind: str  # `*` or `&`


def mismatched_spaces(program: Program) -> Iterator[Finding]:
    """Calls of the program's own functions, and pointers' initializers.

    Only what is certain counts: a variable by its name, its address, or an element of it.
    """
    functions = _plain_functions(program)
    for function in program.functions:
        if function.body is None:
            continue
        variables = _parameters(program, function)
        for index in function.body:
            _declare(program, index, function.body.end, variables)
            yield from _pointer(program, index, function.body.end, variables)
            yield from _call(program, index, functions, variables)


def _plain_functions(program: Program) -> dict[str, list[_Wanted | None]]:
    """For functions whose name no other has: what each parameter wants."""
    found: dict[str, list[_Wanted | None]] = {}
    seen: set[str] = set()
    for function in program.functions:
        if function.is_instantiation or function.is_kernel:
            continue
        if function.name in seen:
            found.pop(function.name, None)
        elif not any("@" in name for name in function.scope):
            runs = program.split(function.parameters)
            found[function.name] = [_wanted(program, run) for run in runs]
        seen.add(function.name)
    return found


def _wanted(program: Program, run: Run) -> _Wanted | None:
    hidden = {i for span in program.attribute_spans(run) for i in span}
    texts = [program.text(i) for i in run if i not in hidden]
    spaces = [t for t in texts if t in ADDRESS_SPACES]
    kinds = [t for t in texts if t in ("*", "&")]
    if len(spaces) != 1 or len(kinds) != 1 or "(" in texts or "<" in texts:
        return None
    return _Wanted(spaces[0], kinds[0])


def _parameters(program: Program, function: Function) -> dict[str, _Variable]:
    found: dict[str, _Variable] = {}
    for run in program.split(function.parameters):
        name = program.declared_name(run)
        wanted = _wanted(program, run)
        if name is None:
            continue
        if wanted is None:
            if not {program.text(i) for i in run} & {"*", "&", "(", "<", "auto"}:
                found[program.text(name)] = _Variable("thread")
        elif wanted.kind == "*":
            found[program.text(name)] = _Variable("thread", wanted.space)
        else:
            found[program.text(name)] = _Variable(wanted.space)
    return found


def _declare(program: Program, index: int, end: int, variables: dict[str, _Variable]) -> None:
    """Takes note of a declaration whose name is the token at ``index``."""
    follows = program.text(index + 1)
    if program.tokens[index].kind != "identifier" or follows not in ("=", ";", ",", "["):
        return
    begin = _begin_of_declaration(program, index)
    texts = [program.text(i) for i in Run(begin, index)]
    if not texts or not any(program.tokens[i].kind == "identifier" for i in Run(begin, index)):
        return
    name = program.text(index)
    variables.pop(name, None)
    spaces = [t for t in texts if t in ADDRESS_SPACES]
    if {"auto", ">", "&"} & set(texts) or len(spaces) > 1:
        return
    if "*" in texts:
        if spaces:
            variables[name] = _Variable("thread", spaces[0])
    elif _is_plain_type(texts):
        variables[name] = _Variable(spaces[0] if spaces else "thread", is_array=follows == "[")


def _is_plain_type(texts: Sequence[str]) -> bool:
    return not {"return", "using", "typedef", "else", "case", "goto", "static"} & set(texts)


def _begin_of_declaration(program: Program, name: int) -> int:
    """Where a statement's declaration begins, or the name itself where it is none."""
    begin = name
    while program.text(begin - 1) in ("*", "&", ">", "::") or (
        program.tokens[begin - 1].kind == "identifier"
    ):
        opening = program.open_angle(begin - 1) if program.text(begin - 1) == ">" else None
        begin = opening if opening is not None else begin - 1
    return begin if program.text(begin - 1) in ("{", "}", ";", "(") else name


def _space_of(program: Program, run: Run, variables: dict[str, _Variable]) -> tuple[str, str]:
    """The address space of an argument: as a pointer's target, and as an object's place."""
    texts = [program.text(i) for i in run]
    if len(texts) == 1 and (variable := variables.get(texts[0])):
        pointee = variable.space if variable.is_array else variable.pointee
        return pointee, "" if variable.pointee else variable.space
    if len(texts) == 2 and texts[0] == "&" and (variable := variables.get(texts[1])):
        return variable.space if not variable.pointee else "", ""
    is_element = len(texts) > 3 and program.text(run.begin + 1 + (texts[0] == "&")) == "["
    if is_element:
        name = run.begin + (texts[0] == "&")
        variable = variables.get(program.text(name))
        if variable and program.close(name + 1) == run.end - 1:
            place = variable.space if variable.is_array else variable.pointee
            return (place, "") if texts[0] == "&" else ("", place)
    return "", ""


def _call(
    program: Program,
    index: int,
    functions: dict[str, list[_Wanted | None]],
    variables: dict[str, _Variable],
) -> Iterator[Finding]:
    name = program.text(index)
    wanted = functions.get(name)
    before = program.tokens[index - 1]
    is_declared = before.kind == "identifier" and before.text not in _BEFORE_CALL
    if wanted is None or program.text(index + 1) != "(" or before.text in (".", "->", "::"):
        return
    given = program.split(Run(index + 2, program.close(index + 1)))
    if is_declared or len(given) != len(wanted):
        return
    for run, want in zip(given, wanted, strict=True):
        pointee, place = _space_of(program, run, variables)
        if want is None:
            continue
        actual = pointee if want.kind == "*" else place
        if actual and actual != want.space:
            what = "pointer" if want.kind == "*" else "reference"
            message = f"'{name}' takes a {want.space} {what}; this is {actual} memory"
            yield Finding("address-space", run.begin, message)


def _pointer(
    program: Program, index: int, end: int, variables: dict[str, _Variable]
) -> Iterator[Finding]:
    """`device float* p = &x;` and `(device float*)&x`."""
    if program.text(index) == "=" and (variable := variables.get(program.text(index - 1))):
        end = min(end, index + _LONGEST_VALUE)
        value = Run(index + 1, end_of_expression(program, index + 1, end))
        pointee, _ = _space_of(program, value, variables)
        if variable.pointee and pointee and pointee != variable.pointee:
            name = program.text(index - 1)
            message = f"'{name}' points to {variable.pointee} memory; this is {pointee} memory"
            yield Finding("address-space", value.begin, message)

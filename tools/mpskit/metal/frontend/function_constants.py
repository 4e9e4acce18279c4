"""Function constants: program-scope constants whose values the host gives when it compiles.

A value travels in a pragma ahead of the source, so that the text says all that a library depends
on.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mpskit.errors import MpskitError
from mpskit.metal.errors import CompileError, Diagnostic
from mpskit.metal.frontend.constants import evaluate
from mpskit.metal.frontend.structure import ADDRESS_SPACES, Program, Run, Variable
from mpskit.metal.frontend.tokens import Source

Value = bool | int | float | Sequence[bool] | Sequence[int] | Sequence[float]
"""Of a scalar, or of a vector's components."""

# Ahead of a source that is only checked: constants without a value are 1.
UNSET_PRAGMA = "#pragma mpskit function_constants unset\n"
_PRAGMA = re.compile(r"^#pragma mpskit function_constant (\S+) (\S+)$", re.MULTILINE)
_SPECIFIERS = frozenset({"const", "constexpr", "static", "inline", "volatile"}) | ADDRESS_SPACES


def pragmas(values: Mapping[str | int, Value]) -> str:
    """Lines for the front of a source that give function constants, by name or index, values."""
    lines = []
    for key, value in values.items():
        name = str(key)
        if not re.fullmatch(r"\w+", name):
            raise MpskitError(
                f"{key!r} is no function constant: give its name or its index.",
            )
        try:
            text = json.dumps(value, separators=(",", ":"))
        except (TypeError, ValueError):
            text = ""
        if not re.fullmatch(r"[-\w.+,\[\]]+", text) or text == "null":
            raise MpskitError(
                f"Function constant {name!r} cannot have the value {value!r}.",
                hint="Give a bool, an int, a float, or a list of them for a vector.",
            )
        lines.append(f"#pragma mpskit function_constant {name} {text}\n")
    return "".join(lines)


@dataclass(frozen=True)
class FunctionConstant:
    """One of the program's; ``value`` is None where the host gave none."""

    variable: Variable
    index: int
    value: Value | None


def function_constants(program: Program) -> dict[str, FunctionConstant]:
    """The program's function constants by name.

    Raises:
        CompileError: an index that is no number, a value for a constant that is not there.
    """
    given: dict[str, Value] = {
        match[1]: json.loads(match[2]) for match in _PRAGMA.finditer(program.source.text)
    }
    default = 1 if UNSET_PRAGMA in program.source.text else None
    found: dict[str, FunctionConstant] = {}
    for variable in program.variables:
        for attribute in variable.attributes:
            if attribute.name == "function_constant" and not variable.is_member:
                index = evaluate(
                    [t.text for t in Source(attribute.arguments).tokens], lambda _: None
                )
                if index is None:
                    what = f"function_constant takes a number, not '{attribute.arguments}'"
                    raise _error(program, variable.name_index, what)
                value = given.get(variable.name, given.get(str(index), default))
                found[variable.name] = FunctionConstant(variable, index, value)
    known = {*found, *(str(constant.index) for constant in found.values())}
    if unknown := sorted(given.keys() - known):
        raise CompileError(
            [Diagnostic(program.source.locate(0), "error", f"no function constant {unknown[0]!r}")],
            hint=f"The program has {', '.join(sorted(found)) or 'none'}.",
        )
    return found


def check_value(program: Program, constant: FunctionConstant) -> None:
    """Raises CompileError where it has no value and the program does not ask whether it has."""
    variable = constant.variable
    if constant.value is None and all(name != variable.name for _, name in defined_calls(program)):
        what = f"function constant '{variable.name}' (index {constant.index}) has no value"
        hint = f"Pass function_constants={{{variable.name!r}: value}}."
        raise _error(program, variable.name_index, what, hint=hint)


def initializer(program: Program, constant: FunctionConstant) -> str:
    """What stands behind the constant's name: `` = value``; raises as `check_value`."""
    check_value(program, constant)
    variable = constant.variable
    kind = " ".join(
        program.text(i) for i in variable.specifiers if program.text(i) not in _SPECIFIERS
    )
    if constant.value is None:
        return f" = {kind}{{}}"
    if isinstance(constant.value, (bool, int, float)):
        return f" = static_cast<{kind}>({_literal(constant.value)})"
    return f" = {kind}({', '.join(map(_literal, constant.value))})"


def defined_calls(program: Program) -> Iterator[tuple[Run, str]]:
    """Each ``is_function_constant_defined(name)``: its tokens, qualified or not, and the name."""
    for index, token in enumerate(program.tokens):
        if token.text == "is_function_constant_defined" and program.text(index + 1) == "(":
            begin = index
            while program.text(begin - 1) == "::":
                begin -= 2 if program.tokens[begin - 2].kind == "identifier" else 1
            yield Run(begin, program.close(index + 1) + 1), program.text(index + 2)


def _literal(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        suffix = "" if -(2**31) < value < 2**31 else "ul" if value >= 2**63 else "l"
        return f"{value}{suffix}"
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{value!r}f" if "." in repr(value) or "e" in repr(value) else f"{value!r}.0f"


def _error(program: Program, index: int, message: str, *, hint: str | None = None) -> CompileError:
    where = program.source.locate(program.tokens[index].start)
    return CompileError([Diagnostic(where, "error", message)], hint=hint)

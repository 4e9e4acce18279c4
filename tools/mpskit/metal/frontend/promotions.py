"""Overloads for half and bfloat of functions that have them for float and for a class.

To Metal a half is a built-in type: it goes to ``float f(float)`` rather than to a class that can be
made from it, as MLX's complex numbers can. In the shim it is a class itself, whose conversion is
no better than the other's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpskit.metal.frontend.structure import Function, Program

_PROMOTED = ("half", "bfloat")
_BUILT_IN = re.compile(
    r"(?:bool|u?char|u?short|u?int|u?long|half|bfloat|float)[234]?|size_t|u?int\d+_t"
)
_ALIAS_DEPTH = 4


def promotions(program: Program) -> Iterator[tuple[int, str]]:
    """Definitions to put behind a token, by the token's index."""
    for functions in _overloads(program).values():
        signatures = [_types(program, function) for function in functions]
        if any(signature is None for signature in signatures):
            continue
        known = {tuple(signature) for signature in signatures if signature is not None}
        for function, types in zip(functions, signatures, strict=True):
            if types is None or "float" not in types or not _meets_class(types, known):
                continue
            for kind in _PROMOTED:
                promoted = [kind if t == "float" else t for t in types]
                if tuple(promoted) not in known:
                    yield function.whole.end - 1, _forwarder(function, types, promoted)


def _overloads(program: Program) -> dict[tuple[str, ...], list[Function]]:
    """Plain functions of a namespace by scope, name and number of parameters, if there are two."""
    found: dict[tuple[str, ...], list[Function]] = {}
    templates: set[tuple[str, ...]] = set()
    for function in program.functions:
        key = (*function.scope, function.name)
        if function.is_template or function.is_instantiation:
            templates.add(key)
        elif function.body and function.name.isidentifier() and not function.is_kernel:
            count = str(len(program.split(function.parameters)))
            found.setdefault((*key, count), []).append(function)
    return {
        key: functions
        for key, functions in found.items()
        if len(functions) > 1 and key[:-1] not in templates and not any("@" in n for n in key)
    }


def _types(program: Program, function: Function) -> list[str] | None:
    """The types of parameters that are single names; None where one is something else."""
    types = []
    for run in program.split(function.parameters):
        name = program.declared_name(run)
        texts = [program.text(i) for i in run if i != name and program.text(i) != "const"]
        if len(texts) != 1:
            return None
        types.append(_resolved(program, texts[0]))
    return types


def _resolved(program: Program, name: str) -> str:
    for _ in range(_ALIAS_DEPTH):
        alias = program.aliases.get(name)
        if alias is None or alias.end - alias.begin != 1:
            break
        name = program.text(alias.begin)
    return name


def _meets_class(types: list[str], known: set[tuple[str, ...]]) -> bool:
    """Whether another overload has a class where this one has a float."""
    return any(
        mine == "float" and not _BUILT_IN.fullmatch(theirs)
        for other in known
        for mine, theirs in zip(types, other, strict=True)
    )


def _forwarder(function: Function, types: list[str], promoted: list[str]) -> str:
    parameters = ", ".join(f"{kind} x{i}" for i, kind in enumerate(promoted))
    arguments = ", ".join(
        f"float(x{i})" if kind == "float" else f"x{i}" for i, kind in enumerate(types)
    )
    return f" inline auto {function.name}({parameters}) {{ return {function.name}({arguments}); }}"

"""Who calls whom: recursion, and kernels called like functions."""

from __future__ import annotations

from collections.abc import Iterator

from mpskit.metal.frontend.structure import Function, Program, Run
from mpskit.metal.lint.rules import Finding

# Identifiers that can stand in front of a call; any other makes it a declaration.
_BEFORE_CALL = frozenset({"return", "else", "do", "case", "and", "or", "not"})


def nameless_kernels(program: Program) -> Iterator[Finding]:
    """Instantiations of kernel templates that no host can name."""
    for function in program.functions:
        names = {attribute.name for attribute in function.attributes}
        if function.is_instantiation and function.is_kernel and "host_name" not in names:
            name = function.name.partition("<")[0].strip()
            message = f"this instantiation of '{name}' has no host_name"
            yield Finding("host-name", function.whole.begin, message)


def kernel_calls(program: Program) -> Iterator[Finding]:
    """Calls of kernels.

    A name that an ordinary function has too is not counted, nor is a call with another number of
    arguments: a kernel may be named like a function of the library that it calls.
    """
    kernels: dict[str, set[int]] = {}
    others: set[str] = set()
    for function in program.functions:
        if function.is_kernel:
            count = len(program.split(function.parameters))
            kernels.setdefault(function.name, set()).add(count)
        else:
            others.add(function.name)
    for function in program.functions:
        for index in _calls(program, function):
            name = program.text(index)
            if _given(program, index) in kernels.get(name, ()) and name not in others:
                yield Finding("kernel-call", index, f"kernel '{name}' cannot be called")


def _given(program: Program, index: int) -> int:
    """The number of arguments of the call that begins at a token."""
    opening = index + 1
    if (closing := program.close_angle(opening, len(program.tokens))) is not None:
        opening = closing + 1
    return len(program.split(Run(opening + 1, program.close(opening))))


def recursion(program: Program) -> Iterator[Finding]:
    """Cycles among functions; only calls that can mean nothing else count."""
    callees = _unambiguous(program)
    edges: dict[str, dict[str, int]] = {}
    for name, function in callees.items():
        local = _local_names(program, function)
        edges[name] = {}
        for index in _calls(program, function):
            callee = program.text(index)
            if callee not in local and _resolves_to(program, index, function, callees):
                edges[name].setdefault(callee, index)
    _drop_acyclic(edges)
    reported: set[str] = set()
    for name in edges:
        if name not in reported and (cycle := _cycle_from(name, edges)):
            reported.update(cycle)
            path = " -> ".join([*cycle, cycle[0]])
            index = edges[cycle[-1]][cycle[0]]
            yield Finding("recursion", index, f"'{cycle[-1]}' calls back into itself: {path}")


def _drop_acyclic(edges: dict[str, dict[str, int]]) -> None:
    """Removes the functions from which no cycle can be reached."""
    callers: dict[str, list[str]] = {name: [] for name in edges}
    for name, calls in edges.items():
        for callee in calls:
            callers[callee].append(name)
    leaves = [name for name, calls in edges.items() if not calls]
    while leaves:
        leaf = leaves.pop()
        del edges[leaf]
        for caller in callers[leaf]:
            del edges[caller][leaf]
            if not edges[caller]:
                leaves.append(caller)


def _cycle_from(start: str, edges: dict[str, dict[str, int]]) -> list[str]:
    """The functions of a shortest cycle through ``start``, none if there is none."""
    came_from: dict[str, str] = {}
    frontier = [start]
    while frontier:
        following = []
        for name in frontier:
            for callee in edges[name]:
                if callee == start:
                    cycle = [name]
                    while cycle[-1] != start:
                        cycle.append(came_from[cycle[-1]])
                    return cycle[::-1]
                if callee not in came_from:
                    came_from[callee] = name
                    following.append(callee)
        frontier = following
    return []


def _unambiguous(program: Program) -> dict[str, Function]:
    """Functions whose name no other definition has; no templates that branch when compiling."""
    found: dict[str, Function] = {}
    seen: set[str] = set()
    for function in program.functions:
        if function.body is None:
            continue
        if function.name in seen:
            found.pop(function.name, None)
        elif not (function.is_template and _branches_when_compiling(program, function)):
            found[function.name] = function
        seen.add(function.name)
    return found


def _branches_when_compiling(program: Program, function: Function) -> bool:
    return any(program.text(i) == "constexpr" for i in function.body or ())


def _resolves_to(
    program: Program, index: int, caller: Function, callees: dict[str, Function]
) -> bool:
    """Whether a call can only be of the one function of its name."""
    callee = callees.get(program.text(index))
    if callee is None or program.text(index + 1) != "(":
        return False
    if program.text(index - 1) == "::" and program.text(index - 2) not in callee.scope:
        return False
    is_member = any("@" in name for name in callee.scope)
    if is_member and callee.scope != caller.scope:
        return False
    given = len(program.split(Run(index + 2, program.close(index + 1))))
    parameters = program.split(callee.parameters)
    required = [run for run in parameters if all(program.text(i) != "=" for i in run)]
    return len(required) <= given <= len(parameters)


def _local_names(program: Program, function: Function) -> set[str]:
    """Names that may be a parameter's or a variable's, such as a lambda's."""
    ends = {run.end for run in program.split(function.parameters)}
    return {
        program.text(i)
        for i in (*function.parameters, *(function.body or ()))
        if program.text(i + 1) == "=" or i + 1 in ends
    }


def _calls(program: Program, function: Function) -> Iterator[int]:
    """The names in a body that a call begins with, without those behind ``.`` and ``->``."""
    for index in function.body or ():
        if program.tokens[index].kind != "identifier":
            continue
        opening = index + 1
        if (closing := program.close_angle(opening, len(program.tokens))) is not None:
            opening = closing + 1
        if program.text(opening) != "(":
            continue
        before = program.tokens[index - 1]
        is_declaration = before.kind == "identifier" and before.text not in _BEFORE_CALL
        if not is_declaration and before.text not in (".", "->", ">"):
            yield index

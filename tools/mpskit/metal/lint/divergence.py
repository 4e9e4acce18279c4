"""Warnings about simdgroup functions that not all lanes reach."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mpskit.metal.frontend.structure import Function, Program, Run
from mpskit.metal.lint.rules import Finding
from mpskit.metal.lint.statements import Branch, Statements, end_of_expression

# Joins the lanes that are there: made for branches.
_FOR_BRANCHES = re.compile(
    r"simd_is_first|simd_active_threads_mask|simd_broadcast_first|simd_is_helper_thread"
    r"|quad_is_first|quad_active_threads_mask|quad_broadcast_first|simd_ballot|quad_ballot"
)
_SIMD = re.compile(r"(?:simd|quad)_[a-z]\w*")
_LANE = frozenset({"thread_index_in_simdgroup", "thread_index_in_quadgroup"})
_THREAD = frozenset(
    {"thread_index_in_threadgroup", "thread_position_in_threadgroup", "thread_position_in_grid"}
)
_SIMD_WIDTH = 32


def divergent_simd(program: Program) -> Iterator[Finding]:
    """Simdgroup functions in branches that depend on the lane."""
    for function in program.functions:
        if function.body is None or not any(
            _SIMD.fullmatch(program.text(i)) for i in function.body
        ):
            continue
        lanes = _lane_dependent(program, function)
        reported: set[int] = set()
        for branch in Statements(program, function.body).branches if lanes.names else ():
            if not _diverges(program, branch, lanes):
                continue
            for index in (*branch.then, *(branch.otherwise or ())):
                name = program.text(index)
                if index in reported or not _SIMD.fullmatch(name):
                    continue
                if program.text(index + 1) in ("(", "<") and not _FOR_BRANCHES.fullmatch(name):
                    reported.add(index)
                    yield Finding(
                        "divergent-simd", index, f"{name} in a branch that lanes differ in"
                    )


@dataclass
class _LaneNames:
    """Names whose values differ inside a simdgroup; ``lanes`` those that are a lane's index."""

    names: set[str]
    lanes: set[str]


def _lane_dependent(program: Program, function: Function) -> _LaneNames:
    lanes: set[str] = set()
    names: set[str] = set()
    for run in program.split(function.parameters):
        attributes = {attribute.name for attribute in program.attributes(run)}
        name = program.declared_name(run)
        if name is not None and attributes & _LANE:
            lanes.add(program.text(name))
        elif name is not None and attributes & _THREAD:
            names.add(program.text(name))
    names |= lanes
    body = function.body or Run(0, 0)
    for index in body if names else ():
        if program.text(index) == "=" and program.tokens[index - 1].kind == "identifier":
            value = Run(index + 1, end_of_expression(program, index + 1, body.end))
            if _varies(program, value, names):
                names.add(program.text(index - 1))
    return _LaneNames(names, lanes)


def _varies(program: Program, run: Run, names: set[str]) -> bool:
    """Whether an expression's value differs from lane to lane for sure: no calls, no memory."""
    index = run.begin
    while index < run.end:
        text = program.text(index)
        if text == "[":
            index = program.close(index)
        elif program.tokens[index].kind == "identifier" and program.text(index + 1) == "(":
            if not _is_cast(text):
                index = program.close(index + 1)
        elif (
            text in names
            and program.text(index - 1) not in (".", "->", "::")
            and not (program.text(index + 1) == "." and program.text(index + 2) in ("y", "z"))
            and program.text(index + 1) not in ("/", ">")
            and program.text(index + 1) != "["
        ):
            return True
        index += 1
    return False


def _is_cast(text: str) -> bool:
    return re.fullmatch(r"u?(?:char|short|int|long)[234]?|bool|size_t", text) is not None


def _diverges(program: Program, branch: Branch, lanes: _LaneNames) -> bool:
    """Whether lanes of one simdgroup take different arms; whole simdgroups may differ."""
    texts = [program.text(i) for i in branch.condition]
    if "simd_is_first" in texts or "quad_is_first" in texts:
        return True
    if not _varies(program, branch.condition, lanes.names):
        return False
    if lanes.lanes.intersection(texts):
        return True
    # `thread < 64` leaves whole simdgroups out.
    bounds = [texts[i + 1 :] for i, text in enumerate(texts) if text in ("<", ">=")]
    return not any(_is_whole_simdgroups(bound) for bound in bounds)


def _is_whole_simdgroups(bound: list[str]) -> bool:
    if any("simd" in text.lower() for text in bound):
        return True
    number = re.fullmatch(r"(\d+)[uU]?", bound[0]) if len(bound) == 1 else None
    return number is not None and int(number[1]) % _SIMD_WIDTH == 0

"""Warnings about threadgroup memory that is read too early."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mpskit.metal.frontend.collectives import names_of_collectives
from mpskit.metal.frontend.structure import Program, Run
from mpskit.metal.lint.rules import Finding
from mpskit.metal.lint.statements import Statements, end_of_expression


def missing_barriers(program: Program) -> Iterator[Finding]:
    """Reads of what another thread wrote to threadgroup memory, with no barrier between."""
    collectives = names_of_collectives(program)
    for function in program.functions:
        if function.body is not None:
            names = _threadgroup_names(program, function.body)
            if names:
                yield from _unfenced_reads(program, function.body, names, collectives)


def _threadgroup_names(program: Program, body: Run) -> set[str]:
    """The `threadgroup` arrays and variables, not pointers, that a kernel declares."""
    names: set[str] = set()
    end = body.begin
    for index in body:
        if program.text(index) != "threadgroup" or index < end:
            continue
        end = end_of_expression(program, index, body.end)
        while program.text(end) == ",":
            end = end_of_expression(program, end + 1, body.end)
        items = program.split(Run(index + 1, end))
        if not items or {"*", "&"} & {program.text(i) for i in items[0]}:
            continue
        if any("atomic" in program.text(i) for i in items[0]):
            continue
        for item in items:
            if (name := program.declared_name(item)) is not None:
                names.add(program.text(name))
    return names


@dataclass(frozen=True)
class _Write:
    at: int
    place: str
    guarded: bool  # by a condition, so that not every thread writes


def _unfenced_reads(
    program: Program, body: Run, names: set[str], collectives: set[str]
) -> Iterator[Finding]:
    statements = Statements(program, body)
    written: dict[str, list[_Write]] = {}
    pending: list[tuple[str, _Write]] = []  # writes of the statement that is being read
    reported: set[str] = set()
    for index in body:
        text = program.text(index)
        if text == ";":
            for name, write in pending:
                written.setdefault(name, []).append(write)
            pending.clear()
        elif program.text(index + 1) == "(" and (text.endswith("_barrier") or text in collectives):
            written.clear()
        elif text in names and program.text(index - 1) not in (".", "->", "::"):
            place, after = _place(program, index)
            if _is_passed_on(program, index, after):
                written.pop(text, None)
            elif program.text(after) == "=":
                pending.append((text, _Write(index, place, _is_guarded(statements, index))))
            elif text not in reported and _races(statements, written.get(text, ()), index, place):
                reported.add(text)
                message = f"'{text}' is read with no barrier since another thread's write"
                yield Finding("missing-barrier", index, message)


def _place(program: Program, index: int) -> tuple[str, int]:
    """The subscripts and members behind a name, as text, and the index behind them."""
    at = index + 1
    while program.text(at) in ("[", ".", "->"):
        at = program.close(at) + 1 if program.text(at) == "[" else at + 2
    return " ".join(program.text(i) for i in Run(index + 1, at)), at


def _is_passed_on(program: Program, index: int, after: int) -> bool:
    """Whether something else gets the address: what happens there is not seen here."""
    if program.text(index - 1) == "&" or (after == index + 1 and program.text(after) in ("+", "-")):
        return True
    return (
        after == index + 1
        and program.text(after) in (",", ")")
        and (program.text(index - 1) in ("(", ","))
    )


def _is_guarded(statements: Statements, index: int) -> bool:
    return any(
        index in branch.then or (branch.otherwise is not None and index in branch.otherwise)
        for branch in statements.branches
    )


def _races(statements: Statements, writes: Sequence[_Write], index: int, place: str) -> bool:
    """Whether a read meets a write of another thread: another place, or a guard left behind."""
    for write in writes:
        if statements.exclude_each_other(write.at, index):
            continue
        if write.place != place:
            return True
        left = any(write.at in b.then and index not in b.then for b in statements.branches)
        if write.guarded and left and not re.search(r"[A-Za-z_]", place):
            return True
    return False

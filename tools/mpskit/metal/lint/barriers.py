"""Warnings about threadgroup memory that is read too early."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mpskit.metal.frontend.collectives import names_of_collectives
from mpskit.metal.frontend.structure import Function, Program, Run
from mpskit.metal.lint.lanes import ThreadValues, threadgroup_names
from mpskit.metal.lint.rules import Finding
from mpskit.metal.lint.statements import Statements

_UPDATES = frozenset({"+=", "-=", "*=", "/=", "&=", "|=", "^=", "++", "--"})


def missing_barriers(program: Program) -> Iterator[Finding]:
    """Reads of what another thread wrote to threadgroup memory, with no barrier between."""
    collectives = names_of_collectives(program)
    for function in program.functions:
        if function.body is not None:
            names = threadgroup_names(program, function.body)
            if names:
                yield from _unfenced_reads(program, function, names, collectives)


def _names_one_thread(program: Program, values: ThreadValues, condition: Run) -> bool:
    """Whether a condition is of the form `thread == 0`."""
    texts = [program.text(i) for i in condition]
    return (
        len(texts) == 3
        and texts[1] == "=="
        and values.varies(condition)
        and not values.lanes.intersection(texts)
    )


@dataclass(frozen=True)
class _Place:
    """What stands behind an array's name, as text.

    ``plane`` is the first of the subscripts where that is the same in all threads: which of two
    buffers, say, one being filled while the other is read.
    """

    text: str
    plane: str
    depth: int

    def is_apart_from(self, other: _Place) -> bool:
        """Whether both lie in planes of an array of several dimensions, and in different ones."""
        both = self.plane != "" and other.plane != "" and self.plane != other.plane
        return both and max(self.depth, other.depth) > 1


@dataclass(frozen=True)
class _Write:
    at: int
    place: _Place
    guarded: bool  # by a condition, so that not every thread writes


def _unfenced_reads(
    program: Program, function: Function, names: set[str], collectives: set[str]
) -> Iterator[Finding]:
    body = function.body or Run(0, 0)
    statements = Statements(program, body)
    values = ThreadValues(program, function)
    single = [
        branch.then
        for branch in statements.branches.values()
        if _names_one_thread(program, values, branch.condition)
    ]
    written: dict[str, list[_Write]] = {}
    pending: list[tuple[str, _Write]] = []  # writes of the statement that is being read
    reported: set[str] = set()
    for index in body:
        text = program.text(index)
        values.assign(index, body.end, diverged=False)
        if text == ";":
            for name, write in pending:
                written.setdefault(name, []).append(write)
            pending.clear()
        elif program.text(index + 1) == "(" and (text.endswith("_barrier") or text in collectives):
            if _orders_threadgroup_memory(program, index):
                written.clear()
        elif text in names and program.text(index - 1) not in (".", "->", "::"):
            place, after = _place(program, index, values)
            if _is_passed_on(program, index, after):
                written.pop(text, None)
            elif program.text(after) == "=":
                pending.append((text, _Write(index, place, _is_guarded(statements, index))))
            elif program.text(after) in _UPDATES:
                pass  # of what is the thread's own, or two would write it
            elif text not in reported and _races(
                statements, single, written.get(text, ()), index, place
            ):
                reported.add(text)
                message = f"'{text}' is read with no barrier since another thread's write"
                yield Finding("missing-barrier", index, message)


def _orders_threadgroup_memory(program: Program, index: int) -> bool:
    """Whether a barrier does; what calls one, or computes its flags, may."""
    flags = {program.text(i) for i in Run(index + 2, program.close(index + 1))}
    return "mem_flags" not in flags or "mem_threadgroup" in flags or "(" in flags


def _place(program: Program, index: int, values: ThreadValues) -> tuple[_Place, int]:
    """The subscripts and members behind a name, and the index behind them."""
    at = index + 1
    subscripts: list[Run] = []
    while program.text(at) in ("[", ".", "->"):
        after = program.close(at) + 1 if program.text(at) == "[" else at + 2
        if program.text(at) == "[":
            subscripts.append(Run(at + 1, after - 1))
        at = after
    plane = ""
    if subscripts and not values.varies(subscripts[0]):
        plane = " ".join(program.text(i) for i in subscripts[0])
    text = " ".join(program.text(i) for i in Run(index + 1, at))
    return _Place(text, plane, len(subscripts)), at


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
        for branch in statements.branches.values()
    )


def _races(
    statements: Statements,
    single: Sequence[Run],
    writes: Sequence[_Write],
    index: int,
    place: _Place,
) -> bool:
    """Whether a read meets a write of another thread: another place, or a guard left behind.

    Args:
        single: what one thread of the threadgroup does alone.
    """
    for write in writes:
        if statements.exclude_each_other(write.at, index):
            continue
        if write.place.is_apart_from(place) or any(
            write.at in arm and index in arm for arm in single
        ):
            continue
        if write.place != place:
            return True
        left = any(write.at in b.then and index not in b.then for b in statements.branches.values())
        if write.guarded and left and not re.search(r"[A-Za-z_]", place.text):
            return True
    return False

"""The runtime's reports, as C structures, made into those of `mpskit.metal.sanitizer`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from mpskit.metal.sanitizer.reports import Absence, Access, Check, Line, Position, Report
from mpskit.metal.sanitizer.symbols import is_pytorchs


class Uint3(ctypes.Structure):
    """abi::Uint3."""

    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


class _Access(ctypes.Structure):
    _fields_ = (
        ("pc", ctypes.c_void_p),
        ("thread", Uint3),
        ("threadgroup", Uint3),
        ("kind", ctypes.c_uint),
        ("bytes", ctypes.c_uint),
    )


class _Absent(ctypes.Structure):
    _fields_ = (
        ("place", ctypes.c_uint),
        ("pc", ctypes.c_void_p),
        ("first", ctypes.c_uint),
        ("last", ctypes.c_uint),
        ("count", ctypes.c_uint),
    )


_MAX_ABSENT = 4


class RawReport(ctypes.Structure):
    """abi::Report."""

    _fields_ = (
        ("check", ctypes.c_uint),
        ("access", _Access),
        ("other", _Access),
        ("same_value", ctypes.c_bool),
        ("variable", ctypes.c_char_p),
        ("array_type", ctypes.c_char_p),
        ("space", ctypes.c_uint),
        ("index", ctypes.c_long),
        ("elements", ctypes.c_ulong),
        ("alignment", ctypes.c_uint),
        ("active", ctypes.c_uint),
        ("expected", ctypes.c_uint),
        ("simdgroup", ctypes.c_bool),
        ("in_one_call", ctypes.c_bool),
        ("absent", _Absent * _MAX_ABSENT),
        ("absent_count", ctypes.c_uint),
    )


# In the order of the enumerations of abi.h.
_CHECKS = tuple(Check)
_KINDS = ("read", "write", "atomic read", "atomic write")
_SPACES = ("device", "constant", "threadgroup")
_ABSENCES = (
    "returned",
    "ran to the kernel's end",
    "waits at another barrier",
    "waits at another simdgroup operation",
)

LineOf = Callable[[int], Line]


def is_meant(raw: Any, lines_of: Callable[[int], Sequence[Line]]) -> bool:
    """Whether a report is of one of PyTorch's reductions, which diverge by design.

    ``c10::metal::threadgroup_sum`` and its like let the first lanes combine what the simdgroups
    have left, and the others pass by, inside one call that all of them make.
    """
    return (
        _CHECKS[raw.check] is Check.SIMD_DIVERGENCE
        and raw.in_one_call
        and any(is_pytorchs(line.file) for line in lines_of(raw.access.pc)[:1])
    )


def read_report(raw: Any, kernel: str, line_of: LineOf) -> Report:
    """A report with its addresses made into lines.

    Args:
        line_of: gives the line of a call, for the address that it returns to.
    """
    check = _CHECKS[raw.check]
    access = _access(raw.access, line_of)
    if check is Check.MISALIGNED_ACCESS or raw.array_type:
        access = Access("access", access.bytes, access.line, access.thread, access.threadgroup)
    is_race = bool(raw.other.pc)
    return Report(
        check=check,
        kernel=kernel,
        file=access.line.file,
        line=access.line.number,
        variable=raw.variable.decode() if raw.variable else None,
        space=_SPACES[raw.space] if raw.variable else None,
        index=raw.index if raw.variable or raw.array_type else None,
        thread=access.thread,
        threadgroup=access.threadgroup,
        access=access,
        other=_access(raw.other, line_of) if is_race else None,
        absences=tuple(_absence(a, check, line_of) for a in raw.absent[: raw.absent_count]),
        details=tuple(_details(raw, check)),
    )


def _details(raw: Any, check: Check) -> list[str]:
    if check is Check.OUT_OF_BOUNDS:
        if raw.array_type:
            return [f"index {raw.index} in an array of type {_array_type(raw)}"]
        if raw.variable is None:
            return ["its address is in no buffer that the kernel was given"]
        count = raw.elements
        return [f"it has {count} element{'' if count == 1 else 's'}"]
    if check is Check.MISALIGNED_ACCESS:
        return [f"its type must start at a multiple of {raw.alignment} bytes"]
    if check in (Check.BARRIER_DIVERGENCE, Check.SIMD_DIVERGENCE):
        group = "simdgroup" if raw.simdgroup else "threadgroup"
        return [f"{raw.active} of the {group}'s {raw.expected} threads were there"]
    if raw.same_value:
        return ["both wrote the same value: a race all the same"]
    return []


def _array_type(raw: Any) -> str:
    """Quoted, in one spelling for all compilers: ``'float[4]'``."""
    spelled: str = raw.array_type.decode()
    return spelled.replace(" [", "[").replace("const ", "")


def _access(raw: Any, line_of: LineOf) -> Access:
    return Access(
        _KINDS[raw.kind],
        raw.bytes,
        line_of(raw.pc or 0),
        _position(raw.thread),
        _position(raw.threadgroup),
    )


def _absence(raw: Any, check: Check, line_of: LineOf) -> Absence:
    what = _ABSENCES[raw.place]
    if check is Check.SIMD_DIVERGENCE:
        what = what.replace("another barrier", "a barrier")
    if raw.count > 1:
        what = what.replace("waits", "wait")
    return Absence(what, raw.first, raw.last, raw.count, line_of(raw.pc) if raw.pc else None)


def _position(raw: Any) -> Position:
    return raw.x, raw.y, raw.z

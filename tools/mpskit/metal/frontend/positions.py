"""Attributes that say where a thread stands, and the types that they can have."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

# Three numbers each; a kernel takes one, two or all of them.
POSITIONS = frozenset(
    {
        "thread_position_in_grid",
        "thread_position_in_threadgroup",
        "threadgroup_position_in_grid",
        "threads_per_grid",
        "threads_per_threadgroup",
        "threadgroups_per_grid",
        "dispatch_threads_per_threadgroup",
        "grid_origin",
        "grid_size",
    }
)
_INDICES = frozenset(
    {
        "thread_index_in_threadgroup",
        "thread_index_in_simdgroup",
        "thread_index_in_quadgroup",
        "threads_per_simdgroup",
        "thread_execution_width",
        "dispatch_simdgroups_per_threadgroup",
        "dispatch_quadgroups_per_threadgroup",
        "simdgroup_index_in_threadgroup",
        "simdgroups_per_threadgroup",
        "quadgroup_index_in_threadgroup",
        "quadgroups_per_threadgroup",
    }
)
# All are fields of abi::Thread, or functions of them (see codegen/entry.h).
BUILTINS = POSITIONS | _INDICES

_BUILT_IN_TYPE = re.compile(
    r"(?:bool|u?char|u?short|u?int|u?long|half|bfloat|float|signed|size_t|ptrdiff_t"
    r"|u?int(?:8|16|32|64)_t)(?P<size>[234]?)"
)
_SCALAR = re.compile(r"ushort|uint|uint16_t|uint32_t|unsigned")
_VECTOR = re.compile(r"(?:ushort|uint)[23]")


def refusal(attribute: str, kind: Sequence[str]) -> str | None:
    """Why a parameter of a type cannot have an attribute; None where it can, or may.

    Args:
        attribute: one of `BUILTINS`.
        kind: the type's tokens. What is no built-in type is for the compiler to judge.
    """
    names = [t for t in kind if _BUILT_IN_TYPE.fullmatch(t) or t == "unsigned"]
    if len(names) != 1 or "vec" in kind or _SCALAR.fullmatch(names[0]):
        return None
    if attribute in POSITIONS:
        if _VECTOR.fullmatch(names[0]):
            return None
        return f"[[{attribute}]] is a ushort or uint, or a vector of two or three; not {names[0]}"
    return f"[[{attribute}]] is a ushort or uint, not {names[0]}"


def nearest(attribute: str) -> str:
    """A sentence that names the attribute that was meant, or nothing."""
    near = difflib.get_close_matches(attribute, sorted(BUILTINS), n=1, cutoff=0.8)
    return f"; did you mean [[{near[0]}]]?" if near else ""

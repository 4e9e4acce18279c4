"""What a scaffold's kernels compute: from the table of known ops, or as the user says."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpskit.errors import MpskitError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TABLE = Path(__file__).with_name("formulas.toml")
_DEFAULT_ROUNDINGS = 64


@dataclass(frozen=True)
class Formula:
    """Metal expressions of float.

    Attributes:
        term: of ``x``, an element: the result where the op is elementwise, else what is summed.
        finish: of ``sum``, for reductions: the result.
    """

    term: str
    finish: str = "sum"


@dataclass(frozen=True)
class KnownOp:
    """An op of the table: what it does in words, and what its template's places hold."""

    about: str
    places: dict[str, str]


def known_op(kind: str, root: str) -> KnownOp | None:
    """The op of that name in the table of its kind."""
    entry: dict[str, Any] | None = _table().get(kind, {}).get(root)
    if entry is None:
        return None
    places = {"roundings": _DEFAULT_ROUNDINGS, **entry}
    return KnownOp(
        places.pop("about"), {key: str(value).strip("\n") for key, value in places.items()}
    )


def known_ops(kind: str) -> tuple[str, ...]:
    """The names in the table of a kind."""
    return tuple(_table().get(kind, {}))


def default_roundings() -> str:
    """How many roundings of float32 a formula of the user's may err by."""
    return str(_DEFAULT_ROUNDINGS)


def _table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return table


def no_formula(kind: str, op: str) -> MpskitError:
    """The refusal of an op that is not in the table, where no formula is given."""
    known = ", ".join(f"aten::{name}" for name in known_ops(kind))
    return MpskitError(
        f"mpskit has no formula for {op}.",
        hint=f"Give one with --formula, a Metal expression of the float x. It knows {known}.",
    )

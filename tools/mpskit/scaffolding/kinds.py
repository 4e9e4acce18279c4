"""The kinds of ops that a scaffold can be made for: what they look like, and their templates."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from mpskit.errors import MpskitError
from mpskit.scaffolding.formulas import (
    Formula,
    default_roundings,
    known_op,
    known_ops,
    no_formula,
)
from mpskit.scaffolding.native_functions import NativeFunction, Op

ELEMENTWISE = "elementwise"
ROW_REDUCTION = "row-reduction"
REDUCTION_WITH_BACKWARD = "reduction-with-backward"
KIND_NAMES = (ELEMENTWISE, ROW_REDUCTION, REDUCTION_WITH_BACKWARD)


@dataclass(frozen=True)
class Kernel:
    """A function of native_functions.yaml, and the MPS kernel that the patch gives it."""

    function: NativeFunction
    name: str


@dataclass(frozen=True)
class Target:
    """An op as one kind of scaffold takes it.

    Attributes:
        kind: its name.
        op: the op.
        kernels: what the patch dispatches to.
        places: what the templates of the kind have places for, the names of files aside.
    """

    kind: str
    op: Op
    kernels: tuple[Kernel, ...]
    places: dict[str, str]


def find_target(
    op: Op, kind: str | None, formula: Formula | None, others: Callable[[str], Op]
) -> Target:
    """The op as the kind ``kind`` takes it, or else the first kind that it fits.

    Args:
        formula: what the kernels compute; None for what is known of the op.
        others: finds the op of a name, for ops that come with another.

    Raises:
        MpskitError: it fits none, or nothing is known of it and no formula is given.
    """
    reasons = []
    for name in (kind,) if kind else KIND_NAMES:
        reason = _FITS[name](op)
        if reason is None:
            return _MAKERS[name](op, formula, others)
        reasons.append(f"{name}: {reason}")
    raise MpskitError(
        f"{op.name} does not fit {'this kind' if kind else 'any kind'} of scaffold. "
        + "; ".join(reasons)
        + ".",
        hint="Begin with an op that does, and change its files to this one's arguments.",
    )


def _elementwise_misfit(op: Op) -> str | None:
    function = op.functions.get("out")
    if function is None:
        return "it has no `out` overload"
    tensors, rest = function.arguments[:1], function.arguments[1:]
    if not tensors[0].startswith("Tensor ") or list(rest) != ["*", "Tensor(a!) out"]:
        return f"{function.name} does not take one tensor and `out` alone"
    if function.says("structured_inherits") != "TensorIteratorBase":
        return f"{function.name} is not structured over a TensorIterator"
    return None


def _elementwise(op: Op, formula: Formula | None, others: Callable[[str], Op]) -> Target:
    function = op.functions["out"]
    places = {
        "self": function.arguments[0].split()[-1],
        **_formula_places(ELEMENTWISE, op, formula),
    }
    return Target(ELEMENTWISE, op, (Kernel(function, f"{op.root.strip('_')}_mps_out"),), places)


def _row_reduction_misfit(op: Op) -> str | None:
    function = op.functions.get("out")
    if function is None:
        return "it has no `out` overload"
    wanted = ["Tensor self", "int[1] dim", "bool keepdim=False", "*", "Tensor(a!) out"]
    if list(function.arguments) != wanted:
        return f"{function.name} does not take {', '.join(wanted)}"
    if function.is_structured:
        return f"{function.name} is structured"
    return None


def _row_reduction(op: Op, formula: Formula | None, others: Callable[[str], Op]) -> Target:
    kernels = (Kernel(op.functions["out"], f"{op.root.strip('_')}_out_mps"),)
    return Target(ROW_REDUCTION, op, kernels, _formula_places(ROW_REDUCTION, op, formula))


def _reduction_with_backward_misfit(op: Op) -> str | None:
    if op.root in known_ops(REDUCTION_WITH_BACKWARD):
        return None
    known = ", ".join(f"aten::{name}" for name in known_ops(REDUCTION_WITH_BACKWARD))
    return f"of these mpskit knows {known}"


def _reduction_with_backward(
    op: Op, formula: Formula | None, others: Callable[[str], Op]
) -> Target:
    if formula is not None:
        raise MpskitError(
            f"{op.name} has a forward and a backward, which one formula does not tell.",
            hint="Leave --formula out, and edit the kernels.",
        )
    backward = others(f"{op.root}_backward")
    kernels = tuple(
        Kernel(each.functions[""], f"{each.root.strip('_')}_mps") for each in (op, backward)
    )
    known = known_op(REDUCTION_WITH_BACKWARD, op.root)
    assert known is not None
    places = {
        "about": known.about,
        "backward_root": backward.root,
        "backward_function": kernels[1].name,
        **known.places,
    }
    return Target(REDUCTION_WITH_BACKWARD, op, kernels, places)


def _formula_places(kind: str, op: Op, formula: Formula | None) -> dict[str, str]:
    """What the table says of the op, unless the user says otherwise."""
    known = known_op(kind, op.root)
    if formula is not None:
        about = known.about if known else op.name
        return {"about": about, "roundings": default_roundings(), **_as_places(kind, formula)}
    if known is None:
        raise no_formula(kind, op.name)
    return {"about": known.about, **known.places}


def _as_places(kind: str, formula: Formula) -> dict[str, str]:
    if kind == ELEMENTWISE:
        return {"formula": formula.term}
    return {
        "state": "float",
        "identity": "0",
        "element": formula.term,
        "combine": "return a + b;",
        "finish": re.sub(r"\bsum\b", "state", formula.finish),
    }


_FITS: dict[str, Callable[[Op], str | None]] = {
    ELEMENTWISE: _elementwise_misfit,
    ROW_REDUCTION: _row_reduction_misfit,
    REDUCTION_WITH_BACKWARD: _reduction_with_backward_misfit,
}
_MAKERS: dict[str, Callable[[Op, Formula | None, Callable[[str], Op]], Target]] = {
    ELEMENTWISE: _elementwise,
    ROW_REDUCTION: _row_reduction,
    REDUCTION_WITH_BACKWARD: _reduction_with_backward,
}

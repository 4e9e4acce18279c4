"""Metal expressions evaluated by a kernel, which checks their types; their values come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from msl_formats import FloatFormat, Layout, same

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
_PER_FUNCTION = 24  # statements; a compiler's time grows faster than a function's length

Compile = Callable[..., Any]


@dataclass(frozen=True)
class Check:
    """An expression, the type that it must have and the value that it must give.

    Attributes:
        text: what the kernel evaluates, in the scope of the evaluation's preamble.
        type: a built-in type, which the expression's must be.
        value: a number, or as many as the type has components.
    """

    text: str
    type: str
    value: Any

    @property
    def expected(self) -> np.ndarray:
        """The value as the type holds it."""
        scalar = Layout.of(self.type).scalar
        return scalar.round(self.value) if isinstance(scalar, FloatFormat) else np.array(self.value)


def mismatches(checks: Iterable[Check], values: Iterable[np.ndarray]) -> list[tuple[str, Any, Any]]:
    """The expressions that gave something else, with what they gave and should have given."""
    return [
        (check.text, value.tolist(), check.expected.tolist())
        for check, value in zip(checks, values, strict=True)
        if not same(value, check.expected).all()
    ]


def size(checks: Iterable[Check]) -> int:
    """How many values the checks compare."""
    return sum(np.size(check.value) for check in checks)


def evaluate(
    compile_shader: Compile, checks: Sequence[Check], declarations: str = "", **options: Any
) -> list[np.ndarray]:
    """The values of all checks' expressions.

    ``declarations`` are statements that come before the expressions, in their scope; `data` is a
    buffer of floats 0, 1, 2, … for what must not be folded by the compiler.
    """
    functions, kernel, offset, places = [], [], 0, []
    for start in range(0, len(checks), _PER_FUNCTION):
        body = []
        for check in checks[start : start + _PER_FUNCTION]:
            layout = Layout.of(check.type)
            offset = -(-offset // layout.alignment) * layout.alignment
            places.append((offset, layout))
            body.append(
                f"  {{ const auto value_ = {check.text};\n"
                f"    static_assert(is_same_v<decltype(value_), const {check.type}>, "
                f'"{check.type}");\n'
                f"    *(device {check.type}*)(out + {offset}) = value_; }}\n"
            )
            offset += layout.size
        name = f"part_{start}"
        functions.append(
            f"void {name}(device uchar* out, constant float* data) {{\n{declarations}\n"
            f"{''.join(body)}}}\n"
        )
        kernel.append(f"{name}(out, data);")
    source = (
        f"{HEADER}{''.join(functions)}"
        f"kernel void evaluate(device uchar* out, constant float* data) {{ {' '.join(kernel)} }}\n"
    )
    out = torch.zeros(offset, dtype=torch.uint8)
    compile_shader(source, **options).evaluate(out, torch.arange(256.0), threads=1)
    data = out.numpy()
    return [layout.decode(data[at : at + layout.size]) for at, layout in places]


def elementwise(functions: Mapping[str, tuple[str, Sequence[str], str]]) -> str:
    """A kernel for each function of one element: its name → result type, operand types, expression.

    The expression is in terms of x, y and z. The kernel takes the results' buffer, then operands'.
    """
    kernels = [HEADER]
    for name, (result, operands, expression) in functions.items():
        names = "xyz"[: len(operands)]
        parameters = "".join(
            f", constant {type}* {x}s" for x, type in zip(names, operands, strict=True)
        )
        values = " ".join(
            f"const {type} {x} = {x}s[i];" for x, type in zip(names, operands, strict=True)
        )
        kernels.append(
            f"kernel void {name}(device {result}* out{parameters},\n"
            f"    uint i [[thread_position_in_grid]]) {{ {values} out[i] = {expression}; }}\n"
        )
    return "".join(kernels)


def tensor(values: object, format: FloatFormat) -> torch.Tensor:
    """Values that the format holds, as the bytes of an array of it."""
    return torch.from_numpy(np.array(format.encode(values)).view(np.uint8).reshape(-1)).clone()


def results(count: int, size: int) -> torch.Tensor:
    """Room for ``count`` elements of ``size`` bytes, filled with what is no likely result."""
    return torch.full((count * size,), 0xA5, dtype=torch.uint8)


def decoded(out: torch.Tensor, format: FloatFormat) -> np.ndarray:
    """The values in a buffer of the format's numbers."""
    return format.decode(out.numpy().view(f"u{format.size}"))

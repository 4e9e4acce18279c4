"""What the translation units of all backends have in common: erased text and functions to call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mpskit.metal.frontend.erase import Eraser
from mpskit.metal.frontend.kernels import Kernel
from mpskit.metal.frontend.structure import Program

ENTRY_POINTS = "mpskit entry points"


def erased_program(
    program: Program,
    kernels: Sequence[Kernel],
    eraser: Eraser,
    insertions: Iterable[tuple[int, str]] = (),
) -> str:
    """The program as C++, in which `function_of` each kernel can be called.

    Behind each explicit instantiation, in its scope, stands a constant that holds the kernel's
    address.

    Args:
        insertions: further text to put behind a token, by the token's index.
    """
    behind = {
        number: (kernel.instantiation.whole.end - 1, f"\x00{number}\x00")
        for number, kernel in enumerate(kernels)
        if kernel.instantiation
    }
    body = eraser.erase([*behind.values(), *insertions])

    def constant(place: re.Match[str]) -> str:
        number = int(place[1])
        if number not in behind:  # the source has such characters of its own
            return place[0]
        kernel = kernels[number]
        assert kernel.instantiation
        parameters = eraser.text_of(kernel.instantiation.parameters)
        expression = kernel.expression.replace("{parameters}", parameters)
        expression = " ".join(expression.split())
        return f" static constexpr auto {_pointer(number)} = {expression};"

    return re.sub(r"\x00(\d+)\x00", constant, body)


def function_of(number: int, kernel: Kernel, *, root: str = "") -> str:
    """A constant expression for the kernel's address, valid behind the program.

    Args:
        root: the namespace that the program is put in, ``::name``.
    """
    if kernel.instantiation:
        return "::".join((root, *kernel.instantiation.scope, _pointer(number)))
    return kernel.expression.replace("&", f"&{root}", 1)


def _pointer(number: int) -> str:
    return f"mpskit_kernel_{number}"


def swizzle_macros(names: set[str]) -> str:
    """The X-macro lists from which the shim declares the swizzles that a program uses."""
    places = {letter: i for letters in ("xyzw", "rgba") for i, letter in enumerate(letters)}
    lines = []
    for size in (2, 3, 4):
        entries = [
            f"S{len(name)}({name}, {', '.join(str(places[letter]) for letter in name)})"
            for name in sorted(names)
            if all(places[letter] < size for letter in name)
        ]
        lines.append(f"#define MPSKIT_SWIZZLES_VEC{size}(S2, S3, S4) {' '.join(entries)}".rstrip())
    return "\n".join(lines)

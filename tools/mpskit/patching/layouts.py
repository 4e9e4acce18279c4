"""Tell how a base is laid out: which of its files defines what the patch replaces.

The linker takes one definition of an op's kernel, so the file that has it identifies the layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mpskit.patching.cpp_source import CppSource, UnbalancedError, find_definitions
from mpskit.patching.edits import ReadText
from mpskit.patching.series import Layout, Patch

_REGISTRATION = re.compile(r"\bTORCH_IMPL_FUNC\s*\(\s*(\w+)\s*\)")


def layouts_of(patch: Patch, read: ReadText) -> tuple[Layout, ...]:
    """Those of ``patch``'s layouts that the tree behind ``read`` has."""
    return tuple(layout for layout in patch.layouts if _has(layout, read))


def _has(layout: Layout, read: ReadText) -> bool:
    text = read(layout.path)
    if text is None:
        return False
    try:
        return bool(find_definitions(CppSource(text), layout.defines))
    except UnbalancedError:
        # It stands there; the edit that is to cut it out says what is wrong with it.
        return True


def unknown_layout(layouts: Iterable[Layout], here: tuple[Layout, ...]) -> str:
    """Why a base is laid out in none of ``layouts``, or in several at once, ``here``."""
    if here:
        places = " and in ".join(layout.path for layout in here)
        return f"{here[0].defines} is defined in {places}, where one of them was expected"
    by_definition: dict[str, list[str]] = {}
    for item in layouts:
        by_definition.setdefault(item.defines, []).append(f"{item.path} ({item.about})")
    looked = " and ".join(f"{what} in {', '.join(where)}" for what, where in by_definition.items())
    return f"the base has none of the known layouts: looked for {looked}"


def lost_registrations(present: str, ours: str) -> list[str]:
    """Kernels of ops that the text ``present`` registers and ``ours`` does not."""
    before, after = (_REGISTRATION.findall(CppSource(text).code) for text in (present, ours))
    return sorted(set(before) - set(after))

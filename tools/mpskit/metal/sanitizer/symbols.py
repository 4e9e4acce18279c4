"""From an address in a kernel library to the user's line, through DWARF."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from mpskit.metal.sanitizer.debug_information import DebugInformation, read_debug_information
from mpskit.metal.sanitizer.reports import Line

IsOurs = Callable[[str], bool]
_UNKNOWN = Line("?", 0)


def is_pytorchs(file: str) -> bool:
    """Whether a file is one of PyTorch's Metal headers."""
    return "c10/metal/" in file


class Symbols:
    """The line tables and inlined calls of one library, read when they are first needed.

    Args:
        library: a shared library with debug information.
        is_ours: whether a file belongs to the toolkit. A line there stands for the line in the
            user's file that called it.
    """

    def __init__(self, library: Path, is_ours: IsOurs) -> None:
        self._library = library
        self._is_ours = is_ours
        self._known: dict[int, tuple[Line, ...]] = {}

    def line_of(self, offset: int) -> Line:
        """The user's line of the instruction at an offset from where the library is loaded.

        Within an inlined function of PyTorch's headers, that is the line that called it.
        """
        lines = self.lines_of(offset)
        return next((line for line in lines if not is_pytorchs(line.file)), (*lines, _UNKNOWN)[0])

    def lines_of(self, offset: int) -> tuple[Line, ...]:
        """The line and those that it was inlined into, inside out, without the toolkit's."""
        if offset not in self._known:
            self._known[offset] = tuple(
                line
                for line in self._frames(offset)
                if line.number and not self._is_ours(line.file)
            )
        return self._known[offset]

    def _frames(self, offset: int) -> Iterator[Line]:
        """The instruction's line, then those of the calls that it was inlined from, inside out."""
        if self._information is None or (address := self._information.address(offset)) is None:
            return
        for unit in self._units:
            if line := unit.line_at(address):
                yield line
                yield from unit.calls_around(address)

    @cached_property
    def _information(self) -> DebugInformation | None:
        return read_debug_information(self._library)

    @cached_property
    def _units(self) -> list[_Unit]:
        if self._information is None:
            return []
        dwarf = self._information.dwarf
        return [_Unit(dwarf, unit) for unit in dwarf.iter_CUs()]


class _Unit:
    """A translation unit's debug information."""

    def __init__(self, dwarf: Any, unit: Any) -> None:
        self._dwarf = dwarf
        self._unit = unit
        self._program = dwarf.line_program_for_CU(unit)

    def line_at(self, offset: int) -> Line | None:
        starts, lines = self._table
        at = bisect.bisect_right(starts, offset) - 1
        return lines[at] if at >= 0 else None

    @cached_property
    def _table(self) -> tuple[list[int], list[Line | None]]:
        """Sorted addresses, and the line from each one on; None between functions."""
        rows: list[tuple[int, int, int, Line | None]] = []
        if self._program is not None:
            for order, entry in enumerate(self._program.get_entries()):
                if (state := entry.state) is not None:
                    line = None if state.end_sequence else self._line(state.file, state.line)
                    rows.append((state.address, not state.end_sequence, order, line))
        rows.sort(key=lambda row: row[:3])
        return [row[0] for row in rows], [row[3] for row in rows]

    def calls_around(self, offset: int) -> Iterator[Line]:
        calls = [
            self._line(die.attributes["DW_AT_call_file"].value,
                       die.attributes["DW_AT_call_line"].value)
            for die in self._inside(self._unit.get_top_DIE(), offset)
            if die.tag == "DW_TAG_inlined_subroutine" and "DW_AT_call_line" in die.attributes
        ]  # fmt: skip
        yield from reversed(calls)

    def _inside(self, parent: Any, offset: int) -> Iterator[Any]:
        """The functions, blocks and inlined calls around an address, outside in."""
        for die in parent.iter_children():
            if die.tag in ("DW_TAG_namespace", "DW_TAG_structure_type", "DW_TAG_class_type"):
                yield from self._inside(die, offset)
            elif die.tag in _CODE and self._covers(die, offset):
                yield die
                yield from self._inside(die, offset)

    def _covers(self, die: Any, offset: int) -> bool:
        low, high = die.attributes.get("DW_AT_low_pc"), die.attributes.get("DW_AT_high_pc")
        if low is not None and high is not None:
            end = high.value if high.form == "DW_FORM_addr" else low.value + high.value
            return bool(low.value <= offset < end)
        ranges = die.attributes.get("DW_AT_ranges")
        return ranges is not None and any(
            begin <= offset < end for begin, end in self._ranges(ranges)
        )

    def _ranges(self, attribute: Any) -> Iterator[tuple[int, int]]:
        base = self._unit.get_top_DIE().attributes.get("DW_AT_low_pc")
        start = base.value if base else 0
        lists = self._dwarf.range_lists()
        for entry in lists.get_range_list_at_offset(attribute.value, cu=self._unit):
            if hasattr(entry, "base_address"):
                start = entry.base_address
            elif getattr(entry, "is_absolute", False):
                yield entry.begin_offset, entry.end_offset
            else:
                yield start + entry.begin_offset, start + entry.end_offset

    def _line(self, file: int, line: int) -> Line:
        return Line(self._files.get(file, "?"), line)

    @cached_property
    def _files(self) -> dict[int, str]:
        if self._program is None:
            return {}
        version = self._program["version"]
        entries = self._program["file_entry"]
        first = 0 if version >= 5 else 1
        return {first + i: self._path(entry, version) for i, entry in enumerate(entries)}

    def _path(self, entry: Any, version: int) -> str:
        name = Path(_text(entry.name))
        folders = self._program["include_directory"]
        index = entry.dir_index if version >= 5 else entry.dir_index - 1
        if index >= (1 if version >= 5 else 0):
            name = Path(_text(folders[index])) / name
        # Relative names are those of files in the compiler's folder, or stand for no file at all.
        file = self._folder / name
        return str(file if file.exists() else name)

    @cached_property
    def _folder(self) -> Path:
        attribute = self._unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        return Path(_text(attribute.value)) if attribute else Path()


_CODE = ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine", "DW_TAG_lexical_block")


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value

"""Where a kernel library's debug information is, and how its addresses relate to the library's.

An ELF library carries its own. A Mach-O library has none: the linker leaves it in the object file,
so the library carries that in a section, put there by `carrier_source`. A function has the same
bytes in both, so an address there is that of its function and what lies between.
"""

from __future__ import annotations

import bisect
import inspect
import io
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SEGMENT, _SECTION = "__MPSKIT", "__object"
# From <mach-o/nlist.h>: entries for debuggers, and the kind that is in a section.
_N_STAB, _N_TYPE, _N_SECT = 0xE0, 0x0E, 0x0E


def carrier_source(object_file: Path) -> str:
    """C++ that puts an object file into the library that it is linked into."""
    return f'asm(".section {_SEGMENT},{_SECTION}\\n.incbin \\"{object_file}\\"\\n");\n'


@dataclass(frozen=True)
class DebugInformation:
    """DWARF as pyelftools reads it.

    Attributes:
        address: for an offset from where the library is loaded, the address that the DWARF has;
            None where it has none.
    """

    dwarf: Any
    address: Callable[[int], int | None]


def read_debug_information(library: Path) -> DebugInformation | None:
    """What there is of a library's; None where there is nothing."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        # The file stays open with the object: debug information is read piece by piece.
        elf = ELFFile(library.open("rb"))
    except ELFError:
        return _of_mach_o(library)
    return DebugInformation(elf.get_dwarf_info(), lambda offset: offset)


def _of_mach_o(library: Path) -> DebugInformation | None:
    try:
        linked = _MachOFile(library)
    except ValueError:
        return None
    carried = linked.section(_SEGMENT, _SECTION)
    if carried is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(carried)
        file.flush()
        compiled = _MachOFile(Path(file.name))
    return DebugInformation(compiled.dwarf(), _address_in_object(linked, compiled))


def _address_in_object(linked: _MachOFile, compiled: _MachOFile) -> Callable[[int], int | None]:
    places = sorted((address, name) for name, address in linked.symbols.items())
    starts = [address for address, _ in places]

    def address(offset: int) -> int | None:
        at = bisect.bisect_right(starts, offset) - 1
        if at < 0:
            return None
        start, name = places[at]
        own = compiled.symbols.get(name)
        return None if own is None else own + offset - start

    return address


class _MachOFile:
    """The sections and symbols of a Mach-O file for one processor."""

    def __init__(self, path: Path) -> None:
        from macholib.MachO import MachO
        from macholib.SymbolTable import SymbolTable

        self._data = path.read_bytes()
        macho = MachO(str(path))
        self._sections = {
            (_name(section.segname), _name(section.sectname)): (section.offset, section.size)
            for header in macho.headers
            for _, command, sections in header.commands
            if hasattr(command, "segname")
            for section in sections
        }
        self.symbols = {
            name.decode(): symbol.n_value
            for symbol, name in SymbolTable(macho).nlists
            if not symbol.n_type & _N_STAB and symbol.n_type & _N_TYPE == _N_SECT
        }

    def section(self, segment: str, name: str) -> bytes | None:
        place = self._sections.get((segment, name))
        return self._data[place[0] : place[0] + place[1]] if place else None

    def dwarf(self) -> Any:
        """Of an object file, whose first section is the code: its addresses need no relocation."""
        from elftools.dwarf.dwarfinfo import DwarfConfig, DWARFInfo

        config = DwarfConfig(little_endian=True, machine_arch="AArch64", default_address_size=8)
        absent = dict.fromkeys(list(inspect.signature(DWARFInfo).parameters)[1:])
        return DWARFInfo(config, **{**absent, **dict(self._dwarf_sections())})

    def _dwarf_sections(self) -> Iterator[tuple[str, Any]]:
        from elftools.dwarf.dwarfinfo import DebugSectionDescriptor

        # A name has at most 16 characters here.
        cut = {"debug_str_offs": "debug_str_offsets"}
        for segment, name in self._sections:
            data = self.section(segment, name)
            if segment == "__DWARF" and data is not None and name.startswith("__debug_"):
                full = cut.get(name[2:], name[2:])
                yield (
                    f"{full}_sec",
                    DebugSectionDescriptor(io.BytesIO(data), f".{full}", 0, len(data), 0),
                )


def _name(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode()

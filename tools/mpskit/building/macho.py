"""Looks into Mach-O object files."""

from __future__ import annotations

from pathlib import Path

from macholib.mach_o import CPU_TYPE_NAMES, MH_OBJECT
from macholib.MachO import MachO
from macholib.SymbolTable import SymbolTable

from mpskit.errors import MpskitError


def defined_symbols(file: Path) -> frozenset[str]:
    """The external symbols that an arm64 object file defines, with Mach-O's leading underscore.

    Raises:
        MpskitError: ``file`` is no such thing.
    """
    try:
        objects = MachO(str(file))
    except (ValueError, OSError) as error:
        raise MpskitError(f"{file} is no Mach-O file: {error}.") from None
    header = objects.headers[0].header
    if CPU_TYPE_NAMES.get(header.cputype) != "ARM64" or header.filetype != MH_OBJECT:
        raise MpskitError(f"{file} is no arm64 object file.")
    return frozenset(name.decode() for _, name in SymbolTable(objects).extdefsyms or ())


def kernel_symbol(kernel: str, symbols: frozenset[str]) -> str | None:
    """The symbol of a native ``kernel`` among ``symbols``: structured, or a plain function."""
    for name, suffix in ((f"structured_{kernel}", "4impl"), (kernel, "E")):
        # The Itanium ABI's name of at::native::name::impl or at::native::name.
        prefix = f"__ZN2at6native{len(name)}{name}{suffix}"
        for symbol in symbols:
            if symbol.startswith(prefix):
                return symbol
    return None

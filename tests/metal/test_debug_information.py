"""Lines of a library for a Mac, which a cross compiler makes here."""

from __future__ import annotations

import subprocess
import sys

import pytest
from macholib.MachO import MachO
from macholib.SymbolTable import SymbolTable

from mpskit.metal.sanitizer.debug_information import carrier_source
from mpskit.metal.sanitizer.symbols import Symbols

SOURCE = """\
#line 1 "shim.h"
static inline __attribute__((always_inline)) float load(const float* x) { return *x; }
#line 1 "user.metal"
static inline __attribute__((always_inline)) float next(const float* x) {
  return load(x + 1);
}
extern "C" void first(float* x) {
  x[0] = next(x);
}
extern "C" void second(float* x) {
  *x *= 3;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mach-o")
    unit, carrier = folder / "unit.cpp", folder / "carrier.cpp"
    made, linked = folder / "unit.o", folder / "library.dylib"
    unit.write_text(SOURCE)
    carrier.write_text(carrier_source(made))
    command = [sys.executable, "-m", "ziglang", "c++", "-target", "aarch64-macos"]
    for arguments in (["-O1", "-g1", "-c", unit, "-o", made],
                      ["-shared", made, carrier, "-o", linked]):  # fmt: skip
        subprocess.run([*command, *map(str, arguments)], check=True)
    made.unlink()
    return linked


def lines_of_function(library, name):
    """The lines of each instruction, for the function's four-byte instructions up to the next."""
    symbols = SymbolTable(MachO(str(library)))
    starts = sorted(entry.n_value for entry, _ in symbols.nlists if entry.n_type & 0xEE == 0x0E)
    start = next(entry.n_value for entry, text in symbols.extdefsyms if text == name)
    end = next((other for other in starts if other > start), start + 8)
    reader = Symbols(library, lambda file: file == "shim.h")
    return {tuple(map(str, reader.lines_of(offset))) for offset in range(start, end, 4)}


def test_lines_and_inlined_calls_without_the_toolkits(library):
    lines = lines_of_function(library, b"_first")
    assert ("user.metal:2", "user.metal:5") in lines
    assert all(number[-1] in ("user.metal:5", "user.metal:6") for number in lines)


def test_functions_that_lie_elsewhere_than_in_the_object(library):
    assert ("user.metal:8",) in lines_of_function(library, b"_second")


def test_a_file_without_debug_information_has_no_lines(tmp_path):
    file = tmp_path / "library"
    file.write_bytes(b"neither ELF nor Mach-O")
    assert str(Symbols(file, lambda _: False).line_of(0)) == "?:0"

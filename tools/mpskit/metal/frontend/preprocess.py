"""From a Metal source with includes to one preprocessed text with line marks."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mpskit.metal.errors import CompileError, Diagnostic
from mpskit.metal.frontend.tokens import Location, Source
from mpskit.metal.host_compiler import Compiler, CompilerFailedError

_INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]')
_PRAGMA_ONCE = re.compile(r"[ \t]*#[ \t]*pragma[ \t]+once\b")
# The standard library's headers: the shim stands in for all of them at once.
_STANDARD = re.compile(r"metal_\w+|simd/simd\.h")


def embed_includes(
    source: str, name: str, include_dirs: Sequence[Path], *, folder: Path | None = None
) -> str:
    """Replaces each ``#include`` by the file it names, once a file, and marks the lines.

    Includes of Metal's standard library disappear. One that is found nowhere stays, for the
    preprocessor to report where it is not in a branch that is left out.

    Args:
        source: Metal source text.
        name: what diagnostics call this text.
        include_dirs: searched in order.
        folder: where the text comes from; searched first by ``#include "…"``.
    """
    seen: set[Path] = set()

    def embed(text: str, name: str, folder: Path | None) -> list[str]:
        lines = [f'#line 1 "{name}"']
        for number, line in enumerate(text.splitlines(), 1):
            include = _INCLUDE.match(line)
            if _PRAGMA_ONCE.match(line) or (include and _STANDARD.fullmatch(include[2])):
                lines.append("")
            elif include and (file := _find(include[2], include[1], folder, include_dirs)):
                if file not in seen:
                    seen.add(file)
                    lines += embed(file.read_text(errors="replace"), str(file), file.parent)
                lines.append(f'#line {number + 1} "{name}"')
            else:
                lines.append(line)
        return lines

    return "\n".join(embed(source, name, folder)) + "\n"


def _find(name: str, quote: str, folder: Path | None, include_dirs: Sequence[Path]) -> Path | None:
    places = [folder, *include_dirs] if quote == '"' and folder else include_dirs
    for place in places:
        file = place / name
        if file.is_file():
            return file.resolve()
    return None


def preprocess(text: str, compiler: Compiler, *, metal_version: int) -> Source:
    """Runs the compiler's preprocessor over an embedded text.

    Args:
        text: the result of `embed_includes`.
        compiler: any C++ compiler; its own macros and headers are kept out.
        metal_version: what ``__METAL_VERSION__`` says, e.g. 320 for Metal 3.2.

    Raises:
        CompileError: a directive is wrong, an include is not found, ``#error``.
    """
    macros = {
        "__METAL__": 1,
        "__METAL_VERSION__": metal_version,
        "__METAL_MACOS__": 1,
        "__HAVE_BFLOAT__": 1,
    }
    with tempfile.TemporaryDirectory(prefix="mpskit-") as scratch:
        file = Path(scratch, "program.cpp")
        file.write_text(text)
        try:
            output = compiler.run(
                [
                    *("-E", "-undef", "-nostdinc", "-std=c++20", "-w"),
                    *(f"-D{macro}={value}" for macro, value in macros.items()),
                    file,
                ]
            )
        except CompilerFailedError as error:
            raise CompileError(read_diagnostics(error.output) or [_unplaced(error)]) from None
    return Source(output)


_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?"
    r"(?P<severity>error|warning|note): (?P<message>.*)$",
    re.MULTILINE,
)


def read_diagnostics(output: str) -> list[Diagnostic]:
    """The messages that a compiler printed, as diagnostics."""
    return [
        Diagnostic(
            Location(match["file"], int(match["line"]), int(match["column"] or 1)),
            match["severity"],
            match["message"],
        )
        for match in _DIAGNOSTIC.finditer(output)
    ]


def _unplaced(error: CompilerFailedError) -> Diagnostic:
    return Diagnostic(Location("program_source", 1, 1), "error", error.message)

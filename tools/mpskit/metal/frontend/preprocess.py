"""From a source with embedded includes to one preprocessed text with line marks."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from mpskit.metal.errors import CompileError, Diagnostic, Location
from mpskit.metal.frontend.sources import SourceLines
from mpskit.metal.frontend.tokens import Source
from mpskit.metal.host_compiler import Compiler, CompilerFailedError


def preprocess(text: str, compiler: Compiler, *, metal_version: int) -> Source:
    """Runs the compiler's preprocessor over an embedded text.

    Args:
        text: the result of `mpskit.metal.frontend.includes.embed_includes`.
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
        file.write_text(text, errors="replace")
        try:
            output = compiler.run(
                [
                    *("-E", "-undef", "-nostdinc", "-std=c++20", "-w"),
                    *(f"-D{macro}={value}" for macro, value in macros.items()),
                    file,
                ]
            )
        except CompilerFailedError as error:
            lines = SourceLines(text)
            found = [_about_includes(d, lines) for d in read_diagnostics(error.output)]
            raise CompileError(found or [_unplaced(error)]) from None
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


_NOT_FOUND = re.compile(
    r"no include path in which to search for (?P<a>.*)|(?P<b>.*): No such file or directory"
    r"|'(?P<c>.*)' file not found"
)


def _about_includes(diagnostic: Diagnostic, lines: SourceLines) -> Diagnostic:
    """One wording, and place, for what every compiler says in its own."""
    match = _NOT_FOUND.fullmatch(diagnostic.message)
    if match is None:
        return diagnostic
    name = match["a"] or match["b"] or match["c"]
    where = diagnostic.location
    column = (lines.line(where.file, where.line) or "").find(name)
    where = Location(where.file, where.line, max(1, column))
    if name.startswith("MetalPerformancePrimitives"):
        message = f"'{name}' is not supported; mpskit runs kernels on buffers"
        return Diagnostic(where, diagnostic.severity, message, "tensor")
    return Diagnostic(where, diagnostic.severity, f"no include folder has '{name}'")


def _unplaced(error: CompilerFailedError) -> Diagnostic:
    return Diagnostic(Location("program_source", 1, 1), "error", error.message)

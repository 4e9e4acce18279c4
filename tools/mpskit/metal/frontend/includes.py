"""Replacing ``#include`` by the text of the file, so that one text is all that a compiler needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpskit.metal.errors import CompileError, Diagnostic, Location

_INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]')
_CONDITION = re.compile(r"[ \t]*#[ \t]*(if|endif)")
_PRAGMA_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b", re.MULTILINE)
_LEADING = re.compile(r"\s+|//[^\n]*|(?s:/\*.*?\*/)")
_GUARD = re.compile(r"#[ \t]*ifndef[ \t]+(\w+)[ \t]*(?://[^\n]*)?\n\s*#[ \t]*define[ \t]+(\w+)")
# The standard library's headers: the shim stands in for all of them at once.
_STANDARD = re.compile(r"metal_\w+|simd/simd\.h")
# Comments and literals that may span lines, or hide the beginning of a comment.
_OPAQUE = re.compile(r'//[^\n]*|(?s:/\*.*?(?:\*/|\Z))|"(?:\\.|[^"\\\n])*"?')
# Both as clang has them, roughly: what is larger includes itself in ever new ways.
_MAX_DEPTH = 100
_MAX_BYTES = 64 << 20


@dataclass
class _File:
    """A file of the program, and how it has been embedded so far.

    ``once`` says that it may take part once only, ``guard`` the macro that sees to that where the
    preprocessor may have left an embedded copy out.
    """

    name: str
    text: str
    folder: Path | None
    once: bool
    guard: str = ""
    is_embedded: bool = False


def embed_includes(
    source: str, name: str, include_dirs: Sequence[Path], *, folder: Path | None = None
) -> str:
    """Replaces each ``#include`` by the file it names, and marks the lines.

    A file with ``#pragma once`` or an include guard is embedded once, any other as often as it is
    included. Includes of Metal's standard library disappear. One that is found nowhere stays, for
    the preprocessor to report where it is not in a branch that is left out.

    Args:
        source: Metal source text.
        name: what diagnostics call this text.
        include_dirs: searched in order.
        folder: where the text comes from; searched first by ``#include "…"``.

    Raises:
        CompileError: includes without end.
    """
    return "\n".join(_Embedding(include_dirs).lines(_File(name, source, folder, False))) + "\n"


class _Embedding:
    def __init__(self, include_dirs: Sequence[Path]) -> None:
        self._include_dirs = include_dirs
        self._files: dict[Path, _File] = {}
        self._open: list[_File] = []
        self._size = 0
        self._guards = 0

    def lines(self, file: _File, *, conditional: bool = False) -> Iterator[str]:
        """The lines of a file; ``conditional`` says that the preprocessor may leave them out."""
        self._open.append(file)
        self._size += len(file.text)
        yield f'#line 1 "{_escaped(file.name)}"'
        depth = -1 if _is_guarded(file.text) else 0
        for number, line, commented in _numbered(file.text):
            include = None if commented else _INCLUDE.match(line)
            if not commented and (condition := _CONDITION.match(line)):
                depth += 1 if condition[1] == "if" else -1
            if _PRAGMA_ONCE.match(line) or (include and _STANDARD.fullmatch(include[2])):
                yield ""
            elif include and (found := self._find(include[2], include[1], file.folder)):
                self._check(file, number)
                yield from self._included(found, conditional or depth > 0)
                yield f'#line {number + 1} "{_escaped(file.name)}"'
            else:
                yield line
        self._open.pop()

    def _included(self, file: _File, conditional: bool) -> Iterator[str]:
        if file in self._open or (file.once and file.is_embedded):
            return
        if not file.once:
            yield from self.lines(file, conditional=conditional)
            return
        file.is_embedded = not conditional
        if conditional and not file.guard:
            self._guards += 1
            file.guard = f"MPSKIT_INCLUDED_{self._guards}"
        if file.guard:
            yield from (f"#ifndef {file.guard}", f"#define {file.guard}")
        yield from self.lines(file, conditional=conditional)
        if file.guard:
            yield "#endif"

    def _find(self, name: str, quote: str, folder: Path | None) -> _File | None:
        places = [folder, *self._include_dirs] if quote == '"' and folder else self._include_dirs
        for place in places:
            try:
                path = (place / name).resolve()
                if path not in self._files:
                    if not path.is_file():
                        continue
                    text = path.read_text(errors="replace")
                    once = bool(_PRAGMA_ONCE.search(text)) or _is_guarded(text)
                    self._files[path] = _File(str(path), text, path.parent, once)
                return self._files[path]
            except (OSError, ValueError):  # a name that no file can have, or no permission
                continue
        return None

    def _check(self, file: _File, number: int) -> None:
        if len(self._open) > _MAX_DEPTH or self._size > _MAX_BYTES:
            what = "#include nested too deeply, or including too much"
            raise CompileError([Diagnostic(Location(file.name, number, 1), "error", what)])


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _is_guarded(text: str) -> bool:
    position = 0
    while leading := _LEADING.match(text, position):
        position = leading.end()
    guard = _GUARD.match(text, position)
    return guard is not None and guard[1] == guard[2]


def _numbered(text: str) -> Iterator[tuple[int, str, bool]]:
    """Each line, its number, and whether it begins inside a comment."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    if "/*" not in text:
        yield from ((number, line, False) for number, line in enumerate(lines, 1))
        return
    in_comment: set[int] = set()
    line, position = 1, 0
    plain = "\n".join(lines)
    for match in _OPAQUE.finditer(plain):
        line += plain.count("\n", position, match.start())
        inside = match.group().count("\n")
        if match.group().startswith("/*"):
            in_comment.update(range(line + 1, line + inside + 1))
        line, position = line + inside, match.end()
    for number, text_line in enumerate(lines, 1):
        yield number, text_line, number in in_comment

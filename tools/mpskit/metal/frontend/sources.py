"""The user's own lines, comments and macros included, by file and number."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import cached_property

from mpskit.metal.errors import CompileError, Location
from mpskit.metal.frontend.tokens import Source, Token

_LINE = re.compile(r'#line (\d{1,9}) "((?:[^"\\]|\\.)*)"')
# Aligning takes time that grows with the square of a line's length.
_MAX_ALIGNED = 2000


class SourceLines:
    """What `mpskit.metal.frontend.includes.embed_includes` put together, taken apart again."""

    def __init__(self, embedded: str) -> None:
        self._embedded = embedded

    @cached_property
    def _lines(self) -> dict[tuple[str, int], str]:
        lines: dict[tuple[str, int], str] = {}
        file, number = "", 1
        for line in self._embedded.removesuffix("\n").split("\n"):
            if mark := _LINE.fullmatch(line):
                number, file = int(mark[1]), re.sub(r"\\(.)", r"\1", mark[2])
            else:
                lines.setdefault((file, number), line)
                number += 1
        return lines

    def line(self, file: str, number: int) -> str | None:
        """A line of a file, without its end; None where there is no such line."""
        return self._lines.get((file, number))

    def original(self, where: Location, text: str) -> Location:
        """The place in the user's line of a place in what became of that line.

        Args:
            where: its column counts in ``text``.
            text: the line after preprocessing or erasing.
        """
        line = self.line(where.file, where.line)
        if line is None or line == text or max(len(line), len(text)) > _MAX_ALIGNED:
            return where
        return Location(where.file, where.line, _aligned(text, line, where.column - 1) + 1)


def _aligned(changed: str, original: str, offset: int) -> int:
    """Where the token that an offset of the changed line lies in begins in the original line.

    A token that is not there, as of a macro's expansion, stands at the macro's name.
    """
    try:
        before, after = Source(original).tokens, Source(changed).tokens
    except CompileError:
        return offset
    at = next((i for i, token in enumerate(after) if token.end > offset), len(after))
    if not before or at == len(after):
        return len(original.rstrip())
    matcher = difflib.SequenceMatcher(
        None, [t.text for t in before], [t.text for t in after], autojunk=False
    )
    opcodes = matcher.get_opcodes()
    tag, begin, _, low, _ = next(code for code in opcodes if code[3] <= at < code[4])
    if tag == "equal":
        token = before[begin + at - low]
        return token.start + max(0, offset - after[at].start)
    gone = {i for code in opcodes if code[0] in ("delete", "replace") for i in range(*code[1:3])}
    names = [i for i in gone if before[i].kind == "identifier" and i <= begin <= _end(before, i)]
    place = max(names, default=begin)
    return before[min(place, len(before) - 1)].start


def _end(tokens: Sequence[Token], name: int) -> int:
    """Where a macro's use ends: behind its name, or behind its arguments."""
    depth = 0
    for index in range(name + 1, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[index].text, 0)
        if depth <= 0:
            return index
    return len(tokens)

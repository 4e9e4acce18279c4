"""Preprocessed Metal as tokens that remember where they came from."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from mpskit.metal.errors import CompileError, Diagnostic


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` is identifier, number, string, character or punctuation.

    ``start`` and ``end`` are offsets into the preprocessed text.
    """

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Location:
    """A place in a file of the user's; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


# Matches at every position: what is nothing else is punctuation, for the compiler to refuse.
_TOKEN = re.compile(
    r"""
      (?P<space>\s+|\\\n)
    | (?P<directive>(?m:^)[ \t]*\#[^\n]*)
    | (?P<string>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]*)\((?:.|\n)*?\)(?P=fence)"
        | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    | (?P<character>[uUL]?'(?:\\.|[^'\\\n])+')
    | (?P<number>\.?\d(?:[eEpP][+-]|'[0-9a-fA-F]|[\w.])*)
    | (?P<identifier>[^\W\d]\w*|\$\w*)
    | (?P<punctuation>::|->|\+\+|--|<<=|[-+*/%&|^=!<>]=|&&|\|\||\.\.\.|[^\w\s])
    """,
    re.VERBOSE,
)
# `# 12 "file.metal" 1` as compilers print it, `#line 12 "file.metal"` as people write it.
_LINE_MARK = re.compile(r'\s*#\s*(?:line\s+)?(\d+)\s+"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Source:
    """Preprocessed text, its tokens and the line marks that name its origin."""

    text: str

    @cached_property
    def tokens(self) -> list[Token]:
        return list(self._scan())

    def _scan(self) -> Iterator[Token]:
        for match in _TOKEN.finditer(self.text):
            kind = "string" if match["string"] is not None else match.lastgroup or ""
            if kind not in ("space", "directive"):
                yield Token(kind, match.group(), match.start(), match.end())

    @cached_property
    def _marks(self) -> list[tuple[int, int, str]]:
        """Each run of lines: the offset where it starts, its first line's number, its file."""
        marks = [(0, 1, "program_source")]
        for match in re.finditer(r"(?m)^[^\n]*#[^\n]*\n", self.text):
            if mark := _LINE_MARK.match(match.group()):
                file = re.sub(r"\\(.)", r"\1", mark[2])
                marks.append((match.end(), int(mark[1]), file))
        return marks

    def locate(self, offset: int) -> Location:
        """The user's file, line and column at an offset of the preprocessed text."""
        at = bisect.bisect_right(self._marks, offset, key=lambda mark: mark[0]) - 1
        start, first, file = self._marks[at]
        line = first + self.text.count("\n", start, offset)
        return Location(file, line, offset - self.text.rfind("\n", 0, offset))


_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Brackets:
    """Partners of brackets, found once for all of a token list."""

    def __init__(self, source: Source) -> None:
        self._partner: dict[int, int] = {}
        open_ones: list[int] = []
        for index, token in enumerate(source.tokens):
            if token.kind != "punctuation":
                continue
            if token.text in _CLOSING:
                open_ones.append(index)
            elif token.text in _CLOSING.values():
                if not open_ones or _CLOSING[source.tokens[open_ones[-1]].text] != token.text:
                    raise _unmatched(source, token)
                opening = open_ones.pop()
                self._partner[opening] = index
                self._partner[index] = opening
        if open_ones:
            raise _unmatched(source, source.tokens[open_ones[-1]])

    def partner(self, index: int) -> int:
        """The index of the bracket that belongs to the one at ``index``."""
        return self._partner[index]


def _unmatched(source: Source, token: Token) -> CompileError:
    where = source.locate(token.start)
    return CompileError([Diagnostic(where, "error", f"'{token.text}' has no partner")])

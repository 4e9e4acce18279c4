"""Preprocessed Metal as tokens that remember where they came from."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from mpskit.metal.errors import CompileError, Diagnostic, Location


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` is identifier, number, string, character or punctuation.

    ``start`` and ``end`` are offsets into the preprocessed text.
    """

    kind: str
    text: str
    start: int
    end: int


# Matches at every position: what is nothing else is punctuation, for the compiler to refuse. No
# alternative is tried again from another start over the same text, so scanning takes linear time.
_TOKEN = re.compile(
    r"""
      (?P<directive>(?m:^)[^\S\n]*\#[^\n]*)
    | (?P<space>\n|[^\S\n]+|\\\n)
    | (?P<raw>(?:u8|[uUL])?R"(?P<fence>[^()\\\s"]{0,16})\()
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*(?:"|\\?(?=\n)|\\?\Z))
    | (?P<character>[uUL]?'(?:\\.|[^'\\\n])*(?:'|\\?(?=\n)|\\?\Z))
    | (?P<number>\.?\d(?:[eEpP][+-]|'[0-9a-fA-F]|[\w.])*)
    | (?P<identifier>[^\W\d]\w*|\$\w*)
    | (?P<punctuation>::|->|\+\+|--|<<=|>>=|[-+*/%&|^=!<>]=|&&|\|\||\.\.\.|[^\w\s])
    """,
    re.VERBOSE,
)
# `# 12 "file.metal" 1` as compilers print it, `#line 12 "file.metal"` as people write it.
_LINE_MARK = re.compile(r'\s*#\s*(?:line\s+)?(\d{1,9})\s+"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Source:
    """Preprocessed text, its tokens and the line marks that name its origin."""

    text: str

    @cached_property
    def tokens(self) -> list[Token]:
        return list(self._scan())

    def _scan(self) -> Iterator[Token]:
        position = 0
        while match := _TOKEN.match(self.text, position):
            kind, position = match.lastgroup or "", match.end()
            if match["raw"] is not None:
                kind, position = "string", self._end_of_raw_string(match)
            if kind not in ("space", "directive"):
                yield Token(kind, self.text[match.start() : position], match.start(), position)

    def _end_of_raw_string(self, opening: re.Match[str]) -> int:
        closing = f'){opening["fence"]}"'
        at = self.text.find(closing, opening.end())
        if at < 0:
            where = self.locate(opening.start())
            raise CompileError([Diagnostic(where, "error", f"raw string without '{closing}'")])
        return at + len(closing)

    @cached_property
    def _marks(self) -> list[tuple[int, int, str]]:
        """Each run of lines: the offset where it starts, its first line's number, its file."""
        marks = [(0, 1, "program_source")]
        for match in re.finditer(r"(?m)^[^\S\n]*#[^\n]*\n", self.text):
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

    def place(self, offset: int) -> tuple[Location, str]:
        """What `locate` says, and the preprocessed line in which the column counts."""
        begin = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        return self.locate(offset), self.text[begin : end if end >= 0 else len(self.text)]


_CLOSING = {"(": ")", "[": "]", "{": "}"}
# Apple's compiler, a clang, goes no deeper either.
MAX_BRACKET_DEPTH = 256
# What cannot stand between a `<` and its `>`; `&&` and `||` can where the list is one for certain.
_END_ANGLES = frozenset({";", "{", "}"})
_END_COMPARISON = frozenset({"&&", "||"})
_TEMPLATE = re.compile(r"template|\w+_[tv]|enable_if|conditional|is_\w+|\w+_cast|\w*_type")
_DECLARES_TEMPLATE = frozenset({"struct", "class", "using"})


class Brackets:
    """Partners of brackets, and of angles that may be a template's, found once for all tokens."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._partner: dict[int, int] = {}
        self._angle: dict[int, int] = {}
        tokens = source.tokens
        templates = {
            name.text for key, name in itertools.pairwise(tokens) if key.text in _DECLARES_TEMPLATE
        }
        open_brackets: list[int] = []
        open_angles: list[list[int]] = [[]]  # for each open bracket, those inside it
        certain: set[int] = set()
        for index, token in enumerate(tokens):
            if token.kind != "punctuation":
                continue
            text = token.text
            if text in _END_ANGLES:
                open_angles[-1].clear()
            elif text in _END_COMPARISON:
                while open_angles[-1] and open_angles[-1][-1] not in certain:
                    open_angles[-1].pop()
            if text in _CLOSING:
                open_brackets.append(index)
                open_angles.append([])
                if len(open_brackets) > MAX_BRACKET_DEPTH:
                    raise self._error(token, f"brackets nest deeper than {MAX_BRACKET_DEPTH}")
            elif text in _CLOSING.values():
                if not open_brackets or _CLOSING[tokens[open_brackets[-1]].text] != text:
                    lonely = self._unclosed(tokens, open_brackets, text) or token
                    raise self._error(lonely, f"'{lonely.text}' has no partner")
                opening = open_brackets.pop()
                open_angles.pop()
                self._partner[opening] = index
                self._partner[index] = opening
            elif text == "<":
                open_angles[-1].append(index)
                before = tokens[index - 1].text if index else ""
                if before in templates or _TEMPLATE.fullmatch(before):
                    certain.add(index)
            elif text == ">" and open_angles[-1]:
                opening = open_angles[-1].pop()
                self._angle[opening] = index
                self._angle[index] = opening
        if open_brackets:
            token = tokens[open_brackets[-1]]
            raise self._error(token, f"'{token.text}' has no partner")

    @staticmethod
    def _unclosed(tokens: Sequence[Token], opened: Sequence[int], closing: str) -> Token | None:
        """The innermost open bracket, where one around it is the one that is closed."""
        closes = any(_CLOSING[tokens[index].text] == closing for index in opened)
        return tokens[opened[-1]] if closes else None

    def partner(self, index: int) -> int:
        """The index of the bracket that belongs to the one at ``index``."""
        return self._partner[index]

    def angle_partner(self, index: int) -> int | None:
        """The same for ``<`` and ``>``; None where that is a comparison for certain."""
        return self._angle.get(index)

    def _error(self, token: Token, message: str) -> CompileError:
        where = self._source.locate(token.start)
        return CompileError([Diagnostic(where, "error", message)])

"""C++ and Objective-C++ text, read just well enough to cut a definition out of it.

No parser: a scanner that knows what is not code (comments, literals, directives), and bracket
counting over what is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

_TOKEN = re.compile(
    r"""
    (?P<directive> ^[ \t]*\#
        (?: "(?:\\.|[^"\\\n])*"
          | /\*.*?(?:\*/|\Z)
          | //(?:\\\r?\n|[^\n])*
          | \\\r?\n
          | [^\n] )*
    )
  | (?P<comment> //(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z) )
  | (?P<raw_string> (?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z) )
  | (?P<string> (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"? )
  | (?P<character> (?:u8|[uUL])?'(?:\\.|[^'\\\n])*'? )
  | \.?\d(?:'\w|[eEpP][+-]|[\w.])*   # a number, so that 1'000 opens no character literal
  | [A-Za-z_]\w*                     # a word, so that a prefix such as L is seen whole
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_CONDITIONAL = re.compile(r"\s*#\s*(?P<name>if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b")
_IF_ZERO = re.compile(r"\s*#\s*if\s+0\s*(?:/[/*].*)?\Z", re.DOTALL)
_BRACKET = re.compile(r"[(){};]")
_VISIBLE = re.compile(r"\S")
_SEMICOLON = re.compile(r"\s*;")
_NOT_NEWLINE = re.compile(r"[^\n]")


class UnbalancedError(Exception):
    """A definition whose end the text does not show; the message says why and at which line."""


@dataclass(frozen=True)
class Span:
    """Characters ``start`` up to, not including, ``end``."""

    start: int
    end: int


@dataclass(frozen=True)
class Conditional:
    """One of ``#if``, ``#elif``, ``#else``, ``#endif``; ``never`` marks a plain ``#if 0``."""

    name: str
    span: Span
    never: bool = False


class CppSource:
    """A source text with its not-code blanked out, so that patterns only meet code."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.comments: list[Span] = []
        self.conditionals: list[Conditional] = []
        blanks: list[Span] = []
        for match in _TOKEN.finditer(text):
            if match.lastgroup is None:
                continue
            span = Span(match.start(), match.end())
            blanks.append(span)
            if match.group("comment") is not None:
                self.comments.append(span)
            elif match.group("directive") is not None:
                self._note_conditional(match.group("directive"), span)
        self.code = _blank(text, [*blanks, *self._disabled()])

    def _note_conditional(self, directive: str, span: Span) -> None:
        match = _CONDITIONAL.match(directive)
        if match:
            never = _IF_ZERO.match(directive) is not None
            self.conditionals.append(Conditional(match.group("name"), span, never))

    def _disabled(self) -> Iterator[Span]:
        """The code between each ``#if 0`` and the ``#else``, ``#elif`` or ``#endif`` of it."""
        for index, opening in enumerate(self.conditionals):
            if not opening.never:
                continue
            depth = 0
            for closing in self.conditionals[index + 1 :]:
                if closing.name.startswith("if"):
                    depth += 1
                elif depth == 0:
                    yield Span(opening.span.end, closing.span.start)
                    break
                elif closing.name == "endif":
                    depth -= 1

    def line_of(self, offset: int) -> int:
        """The line, counted from 1, that ``offset`` is on."""
        return self.text.count("\n", 0, offset) + 1

    def line_start(self, offset: int) -> int:
        return self.text.rfind("\n", 0, offset) + 1

    def line_end(self, offset: int) -> int:
        """The offset just behind the newline that ends the line of ``offset``."""
        newline = self.text.find("\n", offset)
        return len(self.text) if newline < 0 else newline + 1

    @cached_property
    def events(self) -> list[tuple[int, str]]:
        """Brackets and conditionals by offset, in order."""
        brackets = [(match.start(), match.group()) for match in _BRACKET.finditer(self.code)]
        conditionals = [
            (item.span.start, "#if 0" if item.never else "#" + item.name)
            for item in self.conditionals
        ]
        return sorted(brackets + conditionals)

    def definition_end(self, start: int) -> int | None:
        """Where the definition whose head ends at ``start`` ends; None for a mere declaration.

        Of an ``#if`` with several branches the first counts, and of ``#if 0`` the second: each
        branch must leave the same brackets open, or the compiler could not take them all.

        Raises:
            UnbalancedError: a bracket or an ``#if`` does not pair inside the definition.
        """
        return _DefinitionScan(self, start).run()


@dataclass
class _Branch:
    """The innermost open ``#if``: does its present branch count, and has one counted yet?"""

    counts: bool
    counted: bool


class _DefinitionScan:
    def __init__(self, source: CppSource, start: int) -> None:
        self.source = source
        self.start = start
        self.open: list[str] = []
        self.branches: list[_Branch] = []

    def run(self) -> int | None:
        for offset, event in self.source.events:
            if offset < self.start:
                continue
            if event.startswith("#"):
                self._conditional(offset, event)
            elif all(branch.counts for branch in self.branches):
                if event == ";" and not self.open:
                    return None
                if self._bracket(offset, event):
                    return self._closed(offset + 1)
        raise UnbalancedError(
            f"the definition at line {self.source.line_of(self.start)} never closes"
        )

    def _conditional(self, offset: int, event: str) -> None:
        if event.startswith("#if"):
            counts = event != "#if 0"
            self.branches.append(_Branch(counts, counted=counts))
        elif not self.branches:
            raise UnbalancedError(
                f"{event} at line {self.source.line_of(offset)} belongs to an #if ahead of the "
                "definition"
            )
        elif event == "#endif":
            self.branches.pop()
        else:
            branch = self.branches[-1]
            branch.counts, branch.counted = not branch.counted, True

    def _bracket(self, offset: int, bracket: str) -> bool:
        """Count one bracket; true where it closes a brace that nothing encloses."""
        if bracket == ";":
            return False
        if bracket in "({":
            self.open.append(bracket)
            return False
        if not self.open or self.open.pop() != {")": "(", "}": "{"}[bracket]:
            raise UnbalancedError(
                f"'{bracket}' at line {self.source.line_of(offset)} closes nothing"
            )
        return bracket == "}" and not self.open and not self._initialiser_at(offset + 1)

    def _initialiser_at(self, end: int) -> bool:
        """Whether the brace that just closed was ``x{1}`` in a constructor's initialiser list."""
        following = _VISIBLE.search(self.source.code, end)
        return following is not None and following.group() in "{,"

    def _closed(self, end: int) -> int:
        if self.branches:
            raise UnbalancedError(
                f"the definition at line {self.source.line_of(self.start)} ends inside an #if that "
                "starts within it"
            )
        semicolon = _SEMICOLON.match(self.source.code, end)
        return semicolon.end() if semicolon else end


def _blank(text: str, spans: list[Span]) -> str:
    pieces = []
    position = 0
    for span in sorted(spans, key=lambda span: span.start):
        start = max(position, span.start)
        if span.end <= start:
            continue
        pieces += [text[position:start], _NOT_NEWLINE.sub(" ", text[start : span.end])]
        position = span.end
    return "".join([*pieces, text[position:]])


def find_definitions(source: CppSource, head: str) -> list[Span]:
    """Every definition in ``source`` that starts with ``head``, whitespace in it taken loosely.

    Declarations, calls and mentions in comments do not count.

    Raises:
        UnbalancedError: ``head`` stands there, but its definition does not close.
    """
    found = []
    for match in _head_pattern(head).finditer(source.code):
        line_start = source.line_start(match.start())
        if source.code[line_start : match.start()].strip():
            continue
        end = source.definition_end(match.end())
        if end is not None:
            found.append(Span(line_start, end))
    return found


def _head_pattern(head: str) -> re.Pattern[str]:
    words = r"\s+".join(re.escape(word) for word in head.split())
    before = r"(?<!\w)" if re.match(r"\w", head) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", head) else ""
    return re.compile(before + words + after)


def with_surroundings(source: CppSource, definition: Span) -> Span:
    """``definition`` with the comment right above it, the rest of its last line, a blank line.

    The blank line goes where two would meet, or where one would be left ahead of a closing brace
    or of the end of the file.
    """
    start = definition.start
    for comment in reversed(source.comments):
        between = source.text[comment.end : start]
        own_line = source.line_start(comment.start)
        if comment.end > start or between.strip() or between.count("\n") > 1:
            continue
        if source.text[own_line : comment.start].strip():
            break
        start = own_line
    end = definition.end
    if not source.code[end : source.line_end(end)].strip():
        end = source.line_end(end)
    return _one_blank_line_less(source, Span(start, end))


def _one_blank_line_less(source: CppSource, span: Span) -> Span:
    above = source.line_start(span.start - 1) if span.start else 0
    if source.text[above : span.start].strip():
        return span
    below = source.text[span.end : source.line_end(span.end)]
    if below and not below.strip():
        return Span(span.start, span.end + len(below))
    if not below or below.startswith("}"):
        return Span(above, span.end)
    return span

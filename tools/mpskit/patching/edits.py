"""The kinds of edits a patch makes to a file, as pure functions from text to outcome.

An edit is idempotent: on a text that has it already the outcome says ``DONE``. It finds its place
by content and never by line number, since upstream moves every day.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from mpskit.patching.cpp_source import (
    CppSource,
    UnbalancedError,
    find_definitions,
    with_surroundings,
)

ReadText = Callable[[str], str | None]
"""Gives the text of a path in the tree being patched, None where there is no such file."""


class State(Enum):
    """Where an edit, a patch or a whole patch set stands on a given tree.

    ``CHANGED`` is for single edits: it can be made or has been, but upstream has another text at
    its place by now than when the patch set was applied.
    """

    TODO = "to do"
    DONE = "done"
    CHANGED = "changed upstream since"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True)
class Outcome:
    """What an edit comes to: ``text`` is the new text (``TODO`` only), ``reason`` says why."""

    state: State
    text: str | None = None
    reason: str = ""

    @classmethod
    def to_do(cls, text: str, reason: str = "") -> Outcome:
        return cls(State.TODO, text, reason)

    @classmethod
    def done(cls, reason: str = "") -> Outcome:
        return cls(State.DONE, None, reason)

    @classmethod
    def impossible(cls, reason: str) -> Outcome:
        return cls(State.IMPOSSIBLE, None, reason)


@dataclass(frozen=True)
class RemoveDefinition:
    """Cut the C++ or Objective-C++ definition that starts with ``head`` out of ``path``.

    ``replaced_by`` is the file of the patch that defines it anew. Where ``head`` is missing from
    ``path``, it tells "done already" (that file has it) from "gone, nobody knows where".
    """

    kind: ClassVar[str] = "remove_definition"
    path: str
    head: str
    replaced_by: str

    def describe(self) -> str:
        return f"remove {self.head}"

    def evaluate(self, text: str, read: ReadText) -> Outcome:
        source = CppSource(text)
        try:
            definitions = find_definitions(source, self.head)
            if not definitions:
                return self._absent(read)
        except UnbalancedError as error:
            return Outcome.impossible(f"{self.head} in {self.path}: {error}")
        if len(definitions) > 1:
            lines = ", ".join(str(source.line_of(found.start)) for found in definitions)
            return Outcome.impossible(
                f"{self.path} defines {self.head} {len(definitions)} times (lines {lines})"
            )
        cut = with_surroundings(source, definitions[0])
        return Outcome.to_do(text[: cut.start] + text[cut.end :])

    def region(self, text: str) -> str | None:
        """The part of ``text`` that the edit is about, None where it is not there."""
        source = CppSource(text)
        try:
            definitions = find_definitions(source, self.head)
        except UnbalancedError:
            return None
        return text[definitions[0].start : definitions[0].end] if definitions else None

    def _absent(self, read: ReadText) -> Outcome:
        replacement = read(self.replaced_by)
        if replacement is not None and find_definitions(CppSource(replacement), self.head):
            return Outcome.done()
        return Outcome.impossible(
            f"looked for the definition of {self.head} in {self.path} and in {self.replaced_by}, "
            "and neither has it"
        )


@dataclass(frozen=True)
class RemoveInclude:
    """Drop ``#include <header>``, unless a pattern of ``uses`` still matches the file's code."""

    kind: ClassVar[str] = "remove_include"
    path: str
    header: str
    uses: tuple[str, ...]

    def describe(self) -> str:
        return f"remove #include <{self.header}>"

    def evaluate(self, text: str, read: ReadText) -> Outcome:
        del read
        lines = self._lines()
        if not lines.search(text):
            return Outcome.done()
        code = CppSource(text).code
        for pattern in self.uses:
            use = re.search(pattern, code)
            if use:
                line = text.count("\n", 0, use.start()) + 1
                return Outcome.done(f"kept: line {line} still uses {use.group().strip()}")
        return Outcome.to_do(lines.sub("", text))

    def region(self, text: str) -> str | None:
        """The part of ``text`` that the edit is about, None where it is not there."""
        found = self._lines().search(text)
        return found.group() if found else None

    def _lines(self) -> re.Pattern[str]:
        return re.compile(
            rf'^[ \t]*#[ \t]*include[ \t]*[<"]{re.escape(self.header)}[>"][^\n]*(?:\n|\Z)', re.M
        )


@dataclass(frozen=True)
class RemoveLine:
    """Cut out the one line of ``path`` that reads ``line``, its spaces taken loosely.

    A backslash at the line's end, as inside a macro, does not count; where the line was a macro's
    last, the one above it loses its own. ``replaced_by`` is as in ``RemoveDefinition``: the file
    of the patch that, once there, tells "done already" from "gone, nobody knows where".
    """

    kind: ClassVar[str] = "remove_line"
    path: str
    line: str
    replaced_by: str

    def describe(self) -> str:
        return f"remove {self.line}"

    def evaluate(self, text: str, read: ReadText) -> Outcome:
        lines = text.splitlines(keepends=True)
        found = self._find(lines)
        if not found and read(self.replaced_by) is not None:
            return Outcome.done()
        if not found:
            return Outcome.impossible(
                f"looked for `{self.line}` in {self.path}, and it is not there"
            )
        if len(found) > 1:
            numbers = ", ".join(str(index + 1) for index in found)
            return Outcome.impossible(
                f"`{self.line}` must stand in {self.path} once, and stands there {len(found)} "
                f"times (lines {numbers})"
            )
        return Outcome.to_do("".join(_without_line(lines, found[0])))

    def region(self, text: str) -> str | None:
        """The part of ``text`` that the edit is about, None where it is not there."""
        lines = text.splitlines(keepends=True)
        found = self._find(lines)
        return lines[found[0]] if found else None

    def _find(self, lines: list[str]) -> list[int]:
        wanted = self.line.split()
        return [
            index
            for index, line in enumerate(lines)
            if line.rstrip().removesuffix("\\").split() == wanted
        ]


@dataclass(frozen=True)
class ReplaceIn:
    """Replace ``old``, which must stand in ``path`` exactly once, with ``new``."""

    kind: ClassVar[str] = "replace_in"
    path: str
    old: str
    new: str
    optional: bool = False

    def describe(self) -> str:
        return f"replace {_first_line(self.old)}"

    def evaluate(self, text: str, read: ReadText) -> Outcome:
        del read
        old, new = _find(text, self.old), _find(text, self.new)
        # Where one text contains the other, only the longer one tells which of them is there.
        if new and (self.old in self.new or not old):
            return Outcome.done()
        if len(old) != 1:
            return _anchor_trouble(self.path, self.old, text, old)
        replacement = self.new.replace("\n", _newline_of(text))
        return Outcome.to_do(text[: old[0].start()] + replacement + text[old[0].end() :])

    def region(self, text: str) -> str | None:
        """The part of ``text`` that the edit is about, None where it is not there."""
        found = _find(text, self.old)
        return found[0].group() if found else None


@dataclass(frozen=True)
class _Insert:
    """A ``text`` beside an ``anchor``, which must stand in ``path`` exactly once."""

    path: str
    anchor: str
    text: str
    optional: bool = False

    def region(self, text: str) -> str | None:
        """The part of ``text`` that the edit is about, None where it is not there."""
        found = _find(text, self.anchor)
        return found[0].group() if found else None


@dataclass(frozen=True)
class InsertAfter(_Insert):
    """Insert ``text`` right behind ``anchor``, which must stand in ``path`` exactly once."""

    kind: ClassVar[str] = "insert_after"

    def describe(self) -> str:
        return f"insert behind {_first_line(self.anchor)}"

    def evaluate(self, text: str, read: ReadText) -> Outcome:
        del read
        return _replace_anchor(self.path, text, self.anchor, self.anchor + self.text)


@dataclass(frozen=True)
class InsertBefore(_Insert):
    """Insert ``text`` right ahead of ``anchor``, which must stand in ``path`` exactly once."""

    kind: ClassVar[str] = "insert_before"

    def describe(self) -> str:
        return f"insert ahead of {_first_line(self.anchor)}"

    def evaluate(self, text: str, read: ReadText) -> Outcome:
        del read
        return _replace_anchor(self.path, text, self.anchor, self.text + self.anchor)


Edit = RemoveDefinition | RemoveInclude | RemoveLine | ReplaceIn | InsertAfter | InsertBefore
EDIT_KINDS: dict[str, type[Edit]] = {
    kind.kind: kind
    for kind in (RemoveDefinition, RemoveInclude, RemoveLine, ReplaceIn, InsertAfter, InsertBefore)
}


def may_be_left_out(edit: Edit) -> bool:
    """Whether a base that has no such file does without the edit.

    A small checkout has not all of PyTorch's tests, and an older one keeps them elsewhere.
    """
    return isinstance(edit, ReplaceIn | _Insert) and edit.optional


def _without_line(lines: list[str], index: int) -> list[str]:
    kept = lines[:index] + lines[index + 1 :]
    ends_macro = not lines[index].rstrip().endswith("\\")
    if ends_macro and index > 0 and lines[index - 1].rstrip().endswith("\\"):
        above = lines[index - 1].rstrip()
        ending = lines[index - 1][len(above) :]
        kept[index - 1] = above.removesuffix("\\").rstrip() + ending
    return kept


def _find(text: str, literal: str) -> list[re.Match[str]]:
    """Where ``literal`` stands in ``text``, whichever line ends ``text`` has."""
    return list(re.finditer(r"\r?\n".join(map(re.escape, literal.split("\n"))), text))


def _replace_anchor(path: str, text: str, anchor: str, new: str) -> Outcome:
    """Put ``new``, which has ``anchor`` in it, in the place of that one anchor."""
    if _find(text, new):
        return Outcome.done()
    anchors = _find(text, anchor)
    if len(anchors) != 1:
        return _anchor_trouble(path, anchor, text, anchors)
    start, end = anchors[0].span()
    return Outcome.to_do(text[:start] + new.replace("\n", _newline_of(text)) + text[end:])


def _newline_of(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _first_line(literal: str) -> str:
    lines = literal.strip().splitlines()
    return lines[0].strip() + (" ..." if len(lines) > 1 else "")


def _anchor_trouble(path: str, anchor: str, text: str, found: list[re.Match[str]]) -> Outcome:
    quoted = f"`{_first_line(anchor)}`"
    if not found:
        return Outcome.impossible(f"looked for {quoted} in {path}, and it is not there")
    lines = ", ".join(str(text.count("\n", 0, match.start()) + 1) for match in found)
    return Outcome.impossible(
        f"{quoted} must stand in {path} once, and stands there {len(found)} times (lines {lines})"
    )

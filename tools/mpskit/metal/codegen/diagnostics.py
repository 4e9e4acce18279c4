"""A C++ compiler's messages about a translation unit, as messages about the user's source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mpskit.metal.errors import Diagnostic, Location
from mpskit.metal.frontend.anonymous import PREFIX
from mpskit.metal.frontend.erase import THREADGROUP_MEMORY_MESSAGE
from mpskit.metal.frontend.sources import SourceLines
from mpskit.metal.host_compiler import Compiler

_MESSAGE = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?:"
    r"(?:fatal )?(?P<severity>error|warning|note): (?P<message>.*)"
    r"|(?P<context> +(?:required|in 'constexpr') .*))$",
    re.MULTILINE,
)
# Says nothing that the error before it has not said.
_FOLLOWS = re.compile(
    r"template argument \d+ is invalid|no type named 'type' in 'struct metal::enable_if<false"
)
# How g++ and clang say that a candidate takes another number of arguments.
_COUNTS = re.compile(
    r"(?:candidate expects|requires) (?:at least |at most )?(?P<wanted>\d+|single) arguments?"
    r"(?: '\w+')?, (?:but )?(?P<given>\d+) (?:arguments? )?(?:was |were )?provided"
)
_REQUESTED_HERE = re.compile(r"(?:in instantiation of|while substituting) .*")


def message_flags(compiler: Compiler) -> tuple[str, ...]:
    """Flags that make messages exact: types spelled out, columns in bytes."""
    if compiler.is_clang:  # zig's turns suggestions off
        return ("-fno-elide-type", "-fspell-checking")
    return ("-fno-elide-type", "-fdiagnostics-plain-output", "-fdiagnostics-column-unit=byte")


@dataclass
class Message:
    """An error with its notes, and the places whose instantiations led to it, innermost first."""

    diagnostic: Diagnostic
    context: list[Location] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)


def read_messages(output: str) -> list[Message]:
    """The errors that g++ or clang printed; warnings are left out."""
    messages: list[Message] = []
    context: list[Location] = []  # g++ prints it ahead of the error, clang behind
    for match in _MESSAGE.finditer(output):
        where = Location(match["file"], int(match["line"]), int(match["column"] or 1))
        if match["context"]:
            is_innermost = "constexpr" in match["context"]
            context.insert(0 if is_innermost else len(context), where)
        elif match["severity"] == "error":
            messages.append(Message(Diagnostic(where, "error", match["message"]), context))
            context = []
        elif match["severity"] == "note" and messages:
            context = []  # it was the note's
            if _REQUESTED_HERE.match(match["message"]):
                messages[-1].context.append(where)
            else:
                messages[-1].notes.append(Diagnostic(where, "note", match["message"]))
    return messages


@dataclass(frozen=True)
class Explainer:
    """Turns messages about one translation unit into messages about the user's source.

    ``kernels`` are the places of the kernels, in the order of their entry points. What a file
    ``is_system`` the user has written as little as what ``is_ours``, but can look up.
    """

    unit: str
    lines: SourceLines
    kernels: Sequence[Location]
    is_ours: Callable[[str], bool]
    is_system: Callable[[str], bool] = lambda file: False

    def explain(self, messages: Iterable[Message]) -> list[Diagnostic]:
        """The user's diagnostics: errors with the notes that lie in the user's files.

        An error inside the shim, or torch's headers, stands at the user's line that led there; one
        that no line of the user's led to is left out.
        """
        texts = self._line_texts()
        found: list[Diagnostic] = []
        for message in messages:
            place = self._users_place(message)
            if place is None:
                continue
            error = self._rewritten(message.diagnostic, self._original(place, texts))
            if error not in found and not (found and _FOLLOWS.match(error.message)):
                notes = [
                    self._rewritten(note, self._original(note.location, texts))
                    for note in self._kept_notes(message, place)
                ]
                error = self._with_sum(error, message.notes)
                is_told = any("candidate" in note.message for note in notes)
                found += [error if is_told else self._with_count(error, message.notes), *notes]
        return found

    def _users_place(self, message: Message) -> Location | None:
        places = [
            place
            for place in (message.diagnostic.location, *message.context)
            if not self.is_ours(place.file)
        ]
        written = (place for place in places if not self.is_system(place.file))
        found = next(written, None) or next(iter(places), None)
        return found or self._entry_point(message.diagnostic.location)

    def _entry_point(self, where: Location) -> Location | None:
        """The kernel whose entry point a line of the unit's end belongs to."""
        _, _, entries = self.unit.partition(f'# 1 "{where.file}"\n')
        for line in reversed(entries.split("\n")[: where.line]):
            if match := re.search(r"\b(?:entry|kernel|metal|parameters)_(\d+)", line):
                number = int(match[1])
                return self.kernels[number] if number < len(self.kernels) else None
        return None

    def _kept_notes(self, message: Message, place: Location) -> Iterator[Diagnostic]:
        """What else lies in the user's files; candidates' details only make sense with theirs."""
        if THREADGROUP_MEMORY_MESSAGE in message.diagnostic.message:
            return
        own = message.diagnostic.location
        if own != place and not self.is_ours(own.file):
            yield Diagnostic(own, "note", "the error is here")
        for where in message.context:
            if not self.is_ours(where.file) and where != place:
                yield Diagnostic(where, "note", "instantiated from here")
        for note in message.notes:
            file, line = note.location.file, note.location.line
            detail = line == place.line or note.message.startswith(" ") or file.startswith("<")
            if not self.is_ours(file) and not detail:
                yield note

    def _line_texts(self) -> dict[tuple[str, int], list[str]]:
        """The unit's lines by the file and line of the user's that they come from."""
        texts: dict[tuple[str, int], list[str]] = {}
        file, number = "", 1
        for line in self.unit.split("\n"):
            if mark := re.match(r'# (\d{1,9}) "((?:[^"\\]|\\.)*)"', line):
                number, file = int(mark[1]), re.sub(r"\\(.)", r"\1", mark[2])
            else:
                if line.strip():
                    texts.setdefault((file, number), []).append(line)
                number += 1
        return texts

    def _original(self, where: Location, texts: dict[tuple[str, int], list[str]]) -> Location:
        candidates = texts.get((where.file, where.line), [])
        text = next((t for t in candidates if len(t.encode()) >= where.column - 1), None)
        if text is None:
            return where
        column = len(text.encode()[: where.column - 1].decode(errors="ignore")) + 1
        return self.lines.original(Location(where.file, where.line, column), text)

    @staticmethod
    def _rewritten(diagnostic: Diagnostic, where: Location) -> Diagnostic:
        return Diagnostic(where, diagnostic.severity, in_users_words(diagnostic.message))

    @staticmethod
    def _with_sum(error: Diagnostic, notes: Sequence[Diagnostic]) -> Diagnostic:
        """A failed check of threadgroup memory, under its rule and with the bytes."""
        _, found, names = error.message.partition(THREADGROUP_MEMORY_MESSAGE)
        if not found:
            return error
        names = names.strip(' "')
        sizes = (re.search(r"'\(?(\d+) <= (\d+)\)?'", note.message) for note in notes)
        total = next((f"{size[1]} bytes" for size in sizes if size), "too many bytes")
        text = f"threadgroup memory: {total} with {names}; a threadgroup has 32768"
        return Diagnostic(error.location, "error", text, "threadgroup-memory")

    @staticmethod
    def _with_count(error: Diagnostic, notes: Sequence[Diagnostic]) -> Diagnostic:
        """An error about a call of the shim's, with the numbers of arguments that it can take."""
        if not error.message.startswith("no matching function"):
            return error
        counts = [_COUNTS.search(note.message) for note in notes]
        wanted = sorted({"1" if c["wanted"] == "single" else c["wanted"] for c in counts if c})
        given = {c["given"] for c in counts if c}
        if not wanted or given & set(wanted) or len(given) != 1:
            return error
        noun = "argument" if wanted == ["1"] else "arguments"
        text = f"{error.message}: it takes {' or '.join(wanted)} {noun}, not {given.pop()}"
        return Diagnostic(error.location, error.severity, text, error.rule)


_SCALARS = {
    "unsigned char": "uchar",
    "short unsigned int": "ushort",
    "unsigned short": "ushort",
    "unsigned int": "uint",
    "long unsigned int": "ulong",
    "unsigned long": "ulong",
    "short int": "short",
    "long int": "long",
}
_SPELLINGS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r" \{aka '[^']*'\}| \(aka '[^']*'\)"), ""),
    (re.compile(r"; did you mean '(?:mpskit|entry|builtins|target|types|core|abi)::[^']*'\?"), ""),
    (re.compile(r"expected nested-name-specifier before ('\w+')"), r"unknown type \1"),
    (
        re.compile(r"unable to find numeric literal operator 'operator\"\"(\w+)'"),
        r"invalid suffix '\1' of a number",
    ),
    (re.compile(r"'using (\w+) = [^']*'"), r"'\1'"),
    (re.compile(r"(?:::)?\bmpskit(?:_program)?::(?:types::|core::)?"), ""),
    (re.compile(rf"\b{PREFIX}(\w+)(?:<void>)?"), r"\1"),
    (re.compile(r"\bsmall_float<(?:types::)?binary16>"), "half"),
    (re.compile(r"\bsmall_float<(?:types::)?brain16>"), "bfloat"),
    (
        re.compile(r"(?<![\w:])(?:::)?metal::(?=(?:vec|packed_vec|matrix|_atomic|half|bfloat)\b)"),
        "",
    ),
    *(
        (re.compile(rf"\b{words}\b"), name)
        for words, name in sorted(_SCALARS.items(), key=lambda item: -len(item[0]))
    ),
    (re.compile(r"\bvec<(\w+), ?(\d)>"), r"\1\2"),
    (re.compile(r"\bpacked_vec<(\w+), ?(\d)>"), r"packed_\1\2"),
    (re.compile(r"\bmatrix<(\w+), ?(\d), ?(\d)>"), r"\1\2x\3"),
    (re.compile(r"\bstruct (?=\w+[234]?')"), ""),
    (re.compile(r"other_arm<.*?> ="), ""),
    (re.compile(r" \[-[\w=+-]+\]$"), ""),
)


_POSITION = re.compile(
    r"(?:builtins::(\w+)\(.*)?(?:from|conversion from|convert) '[\w:]*Position' to '(?P<type>[^']+)"
)


def in_users_words(message: str) -> str:
    """A compiler's message with Metal's names of types for the shim's."""
    message = _with_subscripts(message.strip())
    if match := _POSITION.search(message):
        attribute = f"[[{match[1]}]]" if match[1] else "a thread's position"
        kind = in_users_words(match["type"])
        return f"{attribute} is an integer, or a vector of two or three; it is no {kind}"
    for pattern, replacement in _SPELLINGS:
        message = pattern.sub(replacement, message)
    return message


_ELEMENT = re.compile(r"\*\((\w+) \+ \(\(sizetype\)")


def _with_subscripts(message: str) -> str:
    """g++'s ``*(in + ((sizetype)(((ulong)i) * 4)))`` as ``in[i]``."""
    while match := _ELEMENT.search(message):
        inner = match.end()
        end = _closing(message, inner)
        index = _outside_product(message[inner + 1 : end])
        if end < 0 or index is None or message[end : end + 3] != ")))":
            break
        message = f"{message[: match.start()]}{match[1]}[{index}]{message[end + 3 :]}"
    return message


def _outside_product(product: str) -> str | None:
    """The index in ``((ulong)i) * 4``."""
    match = re.fullmatch(r"(.*) \* \d+", product)
    if match is None:
        return None
    index = re.sub(r"\((?:ulong|long unsigned int|sizetype|long int|long)\)", "", match[1])
    while index.startswith("(") and _closing(index, 0) == len(index) - 1:
        index = index[1:-1]
    return index


def _closing(text: str, opening: int) -> int:
    """The index of the parenthesis that closes the one at ``opening``; -1 where none does."""
    depth = 0
    for index in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return index
    return -1

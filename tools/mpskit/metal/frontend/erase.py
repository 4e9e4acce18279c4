"""Metal to plain C++20: address spaces erased, attributes stripped, literals made float.

The result keeps every line where it was, so that a C++ compiler's messages name the user's lines.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from mpskit.metal.frontend.anonymous import class_edits
from mpskit.metal.frontend.collectives import collective_calls
from mpskit.metal.frontend.conditionals import conditionals
from mpskit.metal.frontend.function_constants import (
    defined_calls,
    function_constants,
    initializer,
)
from mpskit.metal.frontend.initializers import braced_vectors, designated_arrays
from mpskit.metal.frontend.promotions import promotions
from mpskit.metal.frontend.structure import ADDRESS_SPACES, Function, Program, Run
from mpskit.metal.frontend.swizzle_arguments import swizzle_arguments
from mpskit.metal.frontend.vector_sizes import vector_sizes

_SPECIFIERS = frozenset(
    {"const", "constexpr", "static", "inline", "volatile", "extern", "kernel"} | ADDRESS_SPACES
)
_DECIMAL_FLOAT = re.compile(
    r"(?P<digits>(?:\d[\d']*\.[\d']*|\.\d[\d']*)(?:[eE][+-]?\d+)?|\d[\d']*[eE][+-]?\d+"
    r"|0[xX][0-9a-fA-F.']+[pP][+-]?\d+)(?P<suffix>[fFhH]|bf|BF)?"
)

_ERASED = ADDRESS_SPACES | {"kernel"}
# Types that stay volatile.
_VOLATILE = re.compile(
    r"bool|u?char|u?short|u?int|u?long|unsigned|signed|half|bfloat|float|u?int\d+_t|size_t"
    r"|(?:metal)?_?atomic\w*|void|T"
)

MAX_THREADGROUP_MEMORY = 32768
# What the message of a failed check begins with; the names of the variables follow.
THREADGROUP_MEMORY_MESSAGE = "threadgroup memory:"
# More specifiers than any declaration has, fewer than would make erasing slow.
_LOOK_AROUND = 64
# Nested conditionals repeat their first arms; longer ones stay as they are.
_LONGEST_ARM = 4096

# What a target needs in front of a collective call: how it came there, for a position in the
# program and whether that lies in a kernel.
Mark = Callable[[int, bool], str]
# Given the declared type, the declarators and the sites' numbers, the statement that declares
# `threadgroup` variables on a target.
Declare = Callable[[str, Sequence["ThreadgroupVariable"]], str]


class ThreadgroupVariable:
    """One declarator of a ``threadgroup`` declaration: ``name[extent]``, and its site's number."""

    def __init__(self, name: str, extents: str, site: int) -> None:
        self.name = name
        self.extents = extents
        self.site = site


class Eraser:
    """Collects the edits that turn one program into C++, and makes them."""

    def __init__(self, program: Program, declare: Declare, mark: Mark | None = None) -> None:
        self._program = program
        self._declare = declare
        self._mark = mark
        self._edits: list[tuple[int, int, str]] = []
        self._sites = 0

    def erase(self, insertions: Iterable[tuple[int, str]] = ()) -> str:
        """The program as C++.

        Args:
            insertions: text to put behind a token, by the token's index.
        """
        dropped = [*self._dropped_overloads(), *self._member_specializations()]
        gone = {index for run in dropped for index in run}
        for run in dropped:
            self._blank(run)
        for function in self._program.functions:
            if function.body is not None and function.whole.begin not in gone:
                gone |= self._threadgroup_variables(function.body)
        self._attributes(gone)
        self._coherence(gone)
        self._function_constants(gone)
        self._mark_calls(gone)
        for index in range(len(self._program.tokens)):
            if index not in gone:
                self._token(index)
        self._edits += class_edits(self._program)
        for index in vector_sizes(self._program):
            if index not in gone:
                self._replace(index, "int")
        self._braced_vectors(gone)
        for run in swizzle_arguments(self._program):
            if run.begin not in gone:
                begin = self._program.tokens[run.begin].start
                end = self._program.tokens[run.end - 1].end
                self._edits += [(begin, begin, "::mpskit::plain("), (end, end, ")")]
        for index, text in (*promotions(self._program), *insertions):
            end = self._program.tokens[index].end
            self._edits.append((end, end, text))
        self._edits.sort()
        self._conditionals(gone)
        self._designators(gone)
        return self._apply(0, len(self._program.source.text))

    def text_of(self, run: Run) -> str:
        """The erased text of a run of tokens, once `erase` has been called."""
        tokens = self._program.tokens
        return (
            self._apply(tokens[run.begin].start, tokens[run.end - 1].end)
            if not run.is_empty
            else ""
        )

    def _apply(self, begin: int, end: int) -> str:
        """The text between two offsets, edited; the edits must be in order."""
        text, position = [], begin
        for at in range(bisect.bisect_left(self._edits, (begin,)), len(self._edits)):
            start, stop, replacement = self._edits[at]
            if start > end:
                break
            if stop <= end:
                text += [self._program.source.text[position:start], replacement]
                position = stop
        return "".join(text) + self._program.source.text[position:end]

    # One token at a time.

    def _token(self, index: int) -> None:
        token = self._program.tokens[index]
        if token.kind == "number":
            self._number(index)
        elif token.text == "constant":
            is_needed = not self._qualifies_method(index) and not self._is_const(index)
            self._replace(index, "const" if is_needed else "")
        elif token.text in _ERASED or (token.text == "volatile" and self._is_of_class(index)):
            self._replace(index, "")
        elif chain := self._program.swizzle_chains.get(index):
            run, swizzle = chain
            tokens = self._program.tokens
            self._edits.append((tokens[run.begin].start, tokens[run.end - 1].end, swizzle))

    def _is_of_class(self, index: int) -> bool:
        """Whether `volatile` qualifies a class, whose members would all have to know of it."""
        program = self._program
        index += 1
        while program.text(index) in _SPECIFIERS:
            index += 1
        text = program.text(index)
        is_name = index < len(program.tokens) and program.tokens[index].kind == "identifier"
        return is_name and not _VOLATILE.fullmatch(text)

    def _number(self, index: int) -> None:
        match = _DECIMAL_FLOAT.fullmatch(self._program.tokens[index].text)
        if match is None:
            return
        suffix = (match["suffix"] or "").lower()
        if suffix in ("h", "bf"):
            kind = {"h": "half", "bf": "bfloat"}[suffix]
            self._replace(index, f"{kind}({match['digits']}f)")
        elif not suffix:
            self._replace(index, f"{match['digits']}f")

    def _qualifies_method(self, index: int) -> bool:
        """Whether the address space stands behind a member function's parameters."""
        before = index - 1
        while self._program.text(before) in ("const", "volatile"):
            before -= 1
        return self._program.text(before) == ")" and self._program.text(index + 1) in "{;:->="

    def _is_const(self, index: int) -> bool:
        """Whether the declaration that `constant` specifies says const anyway."""
        text = self._program.text
        for at in range(index - 1, index - _LOOK_AROUND, -1):
            if text(at) in ("const", "constant"):
                return True
            if text(at) not in _SPECIFIERS:
                break
        for at in range(index + 1, index + _LOOK_AROUND):
            if text(at) == "const":
                return True
            if text(at) not in _SPECIFIERS:
                return self._is_const_behind_type(at)
        return False

    def _is_const_behind_type(self, at: int) -> bool:
        """Whether `T const` follows, the const behind the type's name."""
        tokens, text = self._program.tokens, self._program.text
        end = min(len(tokens), at + _LOOK_AROUND)
        while at < end and (tokens[at].kind == "identifier" or text(at) in ("::", "<")):
            if text(at) == "<":
                closing = self._program.close_angle(at, len(tokens))
                if closing is None:
                    return False
                at = closing
            elif text(at) == "const":
                return True
            at += 1
        return False

    def _attributes(self, gone: set[int]) -> None:
        for span in list(self._program.attribute_spans(Run(0, len(self._program.tokens)))):
            if span.begin not in gone:
                self._blank(span)
                gone.update(span)

    def _coherence(self, gone: set[int]) -> None:
        """Removes `coherent(device)` and the like: here all memory is coherent."""
        program = self._program
        for index, token in enumerate(program.tokens):
            if token.text != "coherent" or index in gone:
                continue
            end = index + 1
            if program.text(end) == "(":
                end = program.close(end) + 1
            if program.text(end) in ADDRESS_SPACES:
                self._blank(Run(index, end))
                gone.update(Run(index, end))

    def _mark_calls(self, gone: set[int]) -> None:
        """Makes each collective call `(mark, call)`."""
        if self._mark is None:
            return
        tokens = self._program.tokens
        for call in collective_calls(self._program):
            if call.begin not in gone:
                begin, end = tokens[call.begin].start, tokens[call.end].end
                self._edits.append((begin, begin, f"({self._mark(call.begin, call.in_kernel)}, "))
                self._edits.append((end, end, ")"))

    def _function_constants(self, gone: set[int]) -> None:
        """Gives each its value, and `is_function_constant_defined` the answer."""
        constants = function_constants(self._program)
        for constant in constants.values():
            end = self._program.tokens[constant.variable.name_index].end
            self._edits.append((end, end, initializer(self._program, constant)))
        for call, name in defined_calls(self._program):
            defined = name in constants and constants[name].value is not None
            start, end = (
                self._program.tokens[call.begin].start,
                self._program.tokens[call.end - 1].end,
            )
            self._edits.append((start, end, "true" if defined else "false"))
            gone.update(call)

    def _conditionals(self, gone: set[int]) -> None:
        """Gives the second arm of `c ? x : y` the type of the first; see `conditionals`."""
        for found in conditionals(self._program):
            if found.colon not in gone:
                first = self.text_of(found.first_arm)
                if len(first) <= _LONGEST_ARM:
                    end = self._program.tokens[found.colon].end
                    text = f" ::mpskit::other_arm<decltype({first})> ="
                    bisect.insort(self._edits, (end, end, text))

    def _braced_vectors(self, gone: set[int]) -> None:
        """Makes a vector from what stands in braces, zeros behind it; see `initializers`."""
        for vector in braced_vectors(self._program):
            opening, closing = vector.braces.begin, vector.braces.end - 1
            if opening in gone:
                continue
            if self._program.text(opening - 1) != "=":
                begin = self._program.tokens[opening].start
                self._edits.append((begin, begin, " = "))
            self._replace(opening, f"::mpskit::braced<{vector.kind}>(")
            if self._program.text(closing - 1) == ",":
                self._replace(closing - 1, "")
            self._replace(closing, ")")

    def _designators(self, gone: set[int]) -> None:
        """Makes an array's designators statements; see `initializers`."""
        for array in designated_arrays(self._program):
            if array.initializer.begin in gone:
                continue
            statements = [
                f"::mpskit::designate({', '.join([array.name, *map(self.text_of, element)])})"
                for element in array.elements
            ]
            text = "= {}; " + "; ".join(statements)
            self._replace_run(array.initializer, text)

    # Variables of a threadgroup.

    def _threadgroup_variables(self, body: Run) -> set[int]:
        """Replaces their declarations; returns the tokens that this took care of."""
        taken: set[int] = set()
        visible: list[list[str]] = [[]]  # for each open block, the names that it declares
        for index in body:
            text = self._program.text(index)
            if text == "{":
                visible.append([])
            elif text == "}":
                visible.pop()
            if text != "threadgroup" or index in taken:
                continue
            begin = self._begin_of_declaration(index)
            if self._program.text(begin - 1) not in ("{", "}", ";", ":"):
                continue
            statement = Run(begin, self._end_of_statement(index, body.end))
            if names := self._variables(statement):
                taken.update(statement)
                visible[-1] += names
                self._check_memory(statement, [name for block in visible for name in block])
        return taken

    def _begin_of_declaration(self, index: int) -> int:
        """Where `static T threadgroup x` begins, for the index of its `threadgroup`."""
        program = self._program
        for _ in range(_LOOK_AROUND):
            before = program.tokens[index - 1]
            if (opening := program.open_angle(index - 1)) is not None:
                index = opening
            elif before.text == "::" or (
                before.kind == "identifier" and before.text not in ("return", "else", "do")
            ):
                index -= 1
            else:
                break
        return index

    def _check_memory(self, statement: Run, names: Sequence[str]) -> None:
        """Lets the compiler add up what a block and those around it declare."""
        end = self._program.tokens[statement.end - 1].end
        sizes = " + ".join(f"sizeof({name})" for name in names)
        what = f"{THREADGROUP_MEMORY_MESSAGE} {', '.join(names)}"
        limit = MAX_THREADGROUP_MEMORY
        self._edits.append((end, end, f'; static_assert({sizes} <= {limit}, "{what}")'))

    def _end_of_statement(self, index: int, end: int) -> int:
        while index < end and self._program.text(index) != ";":
            opens = self._program.text(index) in ("(", "[", "{")
            index = self._program.close(index) + 1 if opens else index + 1
        return index

    def _variables(self, statement: Run) -> list[str]:
        """Declares the variables of one statement, unless it declares pointers or references."""
        program = self._program
        definition, kind = self._class_definition(statement)
        declarators = Run(definition.end if definition else statement.begin, statement.end)
        items = program.split(declarators)
        first = program.declared_name(items[0]) if items else None
        if first is None:
            return []
        texts = [program.text(i) for i in Run(declarators.begin, first)]
        unnamed = definition is None and not set(texts) - _SPECIFIERS
        if unnamed or {"*", "&", "(", "="}.intersection(texts):
            return []
        variables = []
        for item in (Run(first, items[0].end), *items[1:]):
            extents = self._plain(self._extents(item))
            variables.append(ThreadgroupVariable(program.text(item.begin), extents, self._sites))
            self._sites += 1
        tokens = program.tokens
        start, end = tokens[statement.begin].start, tokens[statement.end - 1].end
        lines = "\n" * program.source.text.count("\n", start, end)
        before = f"{self._plain(definition)}; " if definition else ""
        if kind and kind not in before:
            before = before.replace("{", f"{kind} {{", 1)
        kind = kind or self._plain(Run(declarators.begin, first))
        self._edits.append((start, end, before + self._declare(kind, variables) + lines))
        return [variable.name for variable in variables]

    def _class_definition(self, statement: Run) -> tuple[Run | None, str]:
        """``threadgroup struct { … }`` before the variables, and the structure's name or one."""
        program = self._program
        name = f"mpskit_{self._sites}"
        for index in statement:
            text = program.text(index)
            if text == "{":
                return Run(statement.begin, program.close(index) + 1), name
            if text not in ADDRESS_SPACES | {"struct", "union", "class", "static"}:
                if program.text(index + 1) != "{":
                    break
                name = text
        return None, ""

    def _extents(self, item: Run) -> Run:
        """What stands behind a name, without an initializer: the memory begins undefined."""
        index = item.begin + 1
        while index < item.end and self._program.text(index) == "[":
            index = self._program.close(index) + 1
        return Run(item.begin + 1, index)

    def _plain(self, run: Run) -> str:
        """The text of a run without address spaces, for a declaration that is written anew."""
        texts = [self._program.text(i) for i in run]
        return " ".join(t for t in texts if t not in ADDRESS_SPACES and t != "static")

    # Overloads.

    def _dropped_overloads(self) -> list[Run]:
        """What differed from an earlier declaration by address space alone."""
        seen: dict[tuple[str, ...], str] = {}
        dropped: list[Run] = []
        for function in self._program.functions:
            if function.is_instantiation or (function.body is None and not _is_member(function)):
                continue  # what is no member can be declared again
            signature = (*function.scope, self._signature(function))
            end = function.body.begin if function.body else function.whole.end
            original = self._spelled(Run(function.head.begin, end))
            if seen.setdefault(signature, original) != original:
                dropped.append(function.whole)
        return dropped + self._defaulted_constructors() + self._dropped_specializations()

    def _defaulted_constructors(self) -> list[Run]:
        """``T() = default`` where no constructor does anything.

        To C++14, and so to Metal, such a class is an aggregate all the same; to C++20 it is none.
        """
        constructors: dict[tuple[str, ...], list[Function]] = {}
        for function in self._program.functions:
            class_name = function.scope[-1].partition("@")[0] if function.scope else ""
            if class_name and function.name.partition("<")[0].strip() == class_name:
                constructors.setdefault(function.scope, []).append(function)
        return [
            function.whole
            for own in constructors.values()
            if all(self._is_defaulted(function) for function in own)
            for function in own
        ]

    def _is_defaulted(self, function: Function) -> bool:
        end = function.whole.end
        texts = [self._program.text(i) for i in range(end - 3, end)]
        return function.parameters.is_empty and texts == ["=", "default", ";"]

    def _member_specializations(self) -> Iterator[Run]:
        """The ``template <>`` of members that are specialized inside their class.

        g++ knows only specializations at namespace scope. Without it the function is an overload,
        which a call with the same arguments prefers as well.
        """
        for function in self._program.functions:
            begin = function.head.begin
            header = Run(begin, begin + 3)
            is_specialization = self._spelled(header) == "template < >"
            if is_specialization and _is_member(function) and "<" not in function.name:
                yield header

    def _signature(self, function: Function) -> str:
        """A function's erased head and parameters, without the parameters' names."""
        parts = [self._plain_declaration(function.head)]
        for parameter in self._program.split(function.parameters):
            texts = self._declaration_texts(parameter)
            if "=" in texts:
                texts = texts[: texts.index("=")]
            if len(texts) > 1 and texts[-1].isidentifier():
                texts.pop()
            parts.append(" ".join(texts))
        end = function.body.begin - 1 if function.body else function.whole.end
        behind = Run(function.parameters.end + 1, end)
        parts.append("const" if self._is_const_method(behind) else "")
        return "|".join(parts)

    def _is_const_method(self, behind: Run) -> bool:
        return any(self._program.text(i) == "const" for i in behind)

    def _plain_declaration(self, run: Run) -> str:
        return " ".join(self._declaration_texts(run))

    def _declaration_texts(self, run: Run) -> list[str]:
        """Tokens as they will be after erasing, in a spelling that makes equal ones equal."""
        hidden = {i for span in self._program.attribute_spans(run) for i in span}
        texts = []
        for index in run:
            text = self._program.text(index)
            if index in hidden or text in ("inline", "static", "kernel"):
                continue
            if text == "constant":
                text = "" if self._is_const(index) else "const"
            elif text in ADDRESS_SPACES:
                text = ""
            if text:
                texts.append(text)
        return texts

    def _spelled(self, run: Run) -> str:
        return " ".join(self._program.text(i) for i in run)

    def _dropped_specializations(self) -> list[Run]:
        """Class specializations that erasing makes equal to the primary or to each other."""
        seen: set[tuple[str, ...]] = set()
        dropped = []
        for head in self._program.classes:
            if head.arguments is None:
                continue
            texts = [self._program.text(i) for i in head.arguments]
            if not ADDRESS_SPACES.intersection(texts):
                continue
            erased = self._plain_declaration(head.arguments)
            key = (*head.scope, head.name, erased)
            is_primary = re.fullmatch(r"\w+(?: , \w+)*", erased) is not None
            if key in seen or is_primary:
                dropped.append(head.whole)
            seen.add(key)
        return dropped

    # Edits.

    def _replace(self, index: int, text: str) -> None:
        token = self._program.tokens[index]
        self._edits.append((token.start, token.end, text))

    def _replace_run(self, run: Run, text: str) -> None:
        """Puts one text in place of a run, in edits that are in order, and of its own edits."""
        tokens = self._program.tokens
        start, end = tokens[run.begin].start, tokens[run.end - 1].end
        lines = "\n" * self._program.source.text.count("\n", start, end)
        first = bisect.bisect_left(self._edits, (start,))
        last = bisect.bisect_left(self._edits, (end,))
        self._edits[first:last] = [(start, end, text + lines)]

    def _blank(self, run: Run) -> None:
        """Removes tokens and keeps their line breaks and line marks."""
        tokens = self._program.tokens
        start, end = tokens[run.begin].start, tokens[run.end - 1].end
        text = self._program.source.text[start:end]
        marks = re.findall(r"\n(?:[ \t]*#[^\n]*)?", text)
        self._edits.append((start, end, "".join(marks)))


def _is_member(function: Function) -> bool:
    return any("@" in name for name in function.scope)

"""The declarations of a Metal program: as much of its structure as erasing needs.

This is no C++ parser. It tells namespaces, classes and functions apart, finds template headers,
parameters and bodies, and reads attributes; types and expressions stay opaque token runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from mpskit.metal.frontend.tokens import Brackets, Source, Token

ADDRESS_SPACES = frozenset({"device", "constant", "threadgroup", "thread", "ray_data"})
_CLASS_KEYS = frozenset({"struct", "class", "union"})
_END_NAME = frozenset({"=", "{", ":", ";"})
_COMPONENTS = ("xyzw", "rgba")
_END_CLASS_HEAD = frozenset({"{", ";", "(", "=", ")"}) | _CLASS_KEYS


@dataclass(frozen=True)
class Attribute:
    """One of ``[[name(arguments)]]``; arguments as written, without the parentheses."""

    name: str
    arguments: str = ""


@dataclass(frozen=True)
class Run:
    """A half-open range of token indices."""

    begin: int
    end: int

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.begin, self.end))

    def __contains__(self, index: int) -> bool:
        return self.begin <= index < self.end

    def __reversed__(self) -> Iterator[int]:
        return reversed(range(self.begin, self.end))

    @property
    def is_empty(self) -> bool:
        return self.begin >= self.end


@dataclass(frozen=True)
class Function:
    """A function's definition, declaration or explicit instantiation at namespace or class scope.

    ``head`` runs from its first token (the template header's) to its parameters' parenthesis,
    ``parameters`` between the parentheses, ``body`` between the braces, where it has one.
    """

    scope: tuple[str, ...]
    name: str
    whole: Run
    head: Run
    parameters: Run
    body: Run | None
    is_template: bool
    is_instantiation: bool
    attributes: tuple[Attribute, ...]
    is_kernel: bool


@dataclass(frozen=True)
class ClassHead:
    """A class: ``name`` is what stands before ``arguments``, ``body`` what its braces hold.

    ``inner_scope`` is the last part of its members' scopes: specializations of one template are
    scopes of their own.
    """

    scope: tuple[str, ...]
    name: str
    whole: Run
    arguments: Run | None
    body: Run

    @property
    def inner_scope(self) -> str:
        return f"{self.name}@{self.body.begin - 1}"


@dataclass(frozen=True)
class Variable:
    """A variable at namespace scope, or a class's member.

    ``specifiers`` runs from its declaration's first token behind a template header to the first
    declared name, ``initializer`` over what stands behind ``=``, where that is there.
    """

    scope: tuple[str, ...]
    name: str
    name_index: int
    whole: Run
    specifiers: Run
    initializer: Run | None
    attributes: tuple[Attribute, ...]
    is_template: bool

    @property
    def is_member(self) -> bool:
        return any("@" in name for name in self.scope)


class _OpenScope(NamedTuple):
    """What is still to be read of a namespace or class, and the names that lead to it."""

    rest: Run
    path: tuple[str, ...]


class Program:
    """A preprocessed source with its brackets matched and its declarations found."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens: Sequence[Token] = source.tokens
        self._brackets = Brackets(source)
        self.functions: list[Function] = []
        self.classes: list[ClassHead] = []
        self.variables: list[Variable] = []
        self.aliases: dict[str, Run] = {}  # what `using` and `typedef` say a name stands for
        self.enumerators: list[Run] = []  # the bodies of enumerations
        self._entered: _OpenScope | None = None  # by the declaration that was read last
        self._scan()

    def text(self, index: int) -> str:
        """The text of a token, or nothing past either end."""
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def close(self, index: int) -> int:
        """The index of the bracket that closes the one at ``index``."""
        return self._brackets.partner(index)

    def open(self, index: int) -> int:
        """The index of the bracket that opens what the one at ``index`` closes."""
        return self._brackets.partner(index)

    def close_angle(self, index: int, end: int) -> int | None:
        """The index of the ``>`` that closes the ``<`` at ``index``; None if it opens no list."""
        closing = self._brackets.angle_partner(index)
        return closing if closing is not None and closing < end else None

    def open_angle(self, index: int) -> int | None:
        """The index of the ``<`` that opens the list which the ``>`` at ``index`` closes."""
        return self._brackets.angle_partner(index)

    def split(self, run: Run) -> list[Run]:
        """A list's items: the runs between its commas, brackets and angles skipped."""
        items: list[Run] = []
        begin = index = run.begin
        while index < run.end:
            text = self.text(index)
            if text in ("(", "[", "{"):
                index = self.close(index)
            elif text == "<" and (closing := self.close_angle(index, run.end)):
                index = closing
            elif text == ",":
                items.append(Run(begin, index))
                begin = index + 1
            index += 1
        if begin < run.end:
            items.append(Run(begin, run.end))
        return items

    def attributes(self, run: Run) -> list[Attribute]:
        """The attributes of every ``[[…]]`` in a run of tokens."""
        found: list[Attribute] = []
        for span in self.attribute_spans(run):
            for item in self.split(Run(span.begin + 2, span.end - 2)):
                name = self.text(item.begin)
                opening = item.begin + 1
                if self.text(opening) == "::":
                    opening += 2
                arguments = ""
                if opening < item.end and self.text(opening) == "(":
                    begin, end = self.tokens[opening].end, self.tokens[self.close(opening)].start
                    arguments = self.source.text[begin:end].strip()
                found.append(Attribute(name, arguments))
        return found

    def attribute_spans(self, run: Run) -> Iterator[Run]:
        """The runs of tokens that ``[[…]]`` take up."""
        index = run.begin
        while index < run.end:
            if self.is_attribute(index):
                end = self.close(index) + 1
                yield Run(index, end)
                index = end
            else:
                index += 1

    def is_attribute(self, index: int) -> bool:
        """Whether ``[[`` opens at this token."""
        return self.text(index) == "[" and self.text(index + 1) == "["

    # Declarations, scope by scope.

    def _scan(self) -> None:
        """Reads all declarations in source order, without recursing into nested scopes."""
        scopes = [_OpenScope(Run(0, len(self.tokens)), ())]
        while scopes:
            run, scope = scopes.pop()
            index = run.begin
            while index < run.end and self._entered is None:
                index = self._declaration(index, run.end, scope)
            if self._entered is not None:
                scopes += [_OpenScope(Run(index, run.end), scope), self._entered]
                self._entered = None

    def _declaration(self, index: int, end: int, scope: tuple[str, ...]) -> int:
        """Reads the declaration at ``index`` and returns where the next one begins."""
        text = self.text(index)
        if text in ("public", "private", "protected") and self.text(index + 1) == ":":
            return index + 2
        if text == "inline" and self.text(index + 1) == "namespace":
            index, text = index + 1, "namespace"
        if text == "namespace":
            return self._namespace(index, end, scope)
        if text == "extern" and self.text(index + 2) == "{":
            closing = self.close(index + 2)
            self._entered = _OpenScope(Run(index + 3, closing), scope)
            return closing + 1
        names_class = text == "typedef" and self.text(index + 1) in _CLASS_KEYS
        if names_class and self._opens_class(index + 1, end):
            return self._class(index, index + 1, end, scope)
        if text in ("using", "typedef", "static_assert"):
            after = self._past_semicolon(index, end)
            self._alias(Run(index, after - 1))
            return after
        return self._entity(index, end, scope)

    def _namespace(self, index: int, end: int, scope: tuple[str, ...]) -> int:
        opening = index + 1
        while opening < end and self.text(opening) not in ("{", ";"):
            opening = self.close(opening) + 1 if self.text(opening) == "[" else opening + 1
        if self.text(opening) != "{":
            return opening + 1
        names = [t.text for t in self.tokens[index + 1 : opening] if t.kind == "identifier"]
        closing = self.close(opening)
        self._entered = _OpenScope(Run(opening + 1, closing), scope + tuple(names))
        return closing + 1

    def _past_semicolon(self, index: int, end: int) -> int:
        while index < end and self.text(index) != ";":
            index = self.close(index) + 1 if self.text(index) in ("(", "[", "{") else index + 1
        return index + 1

    def _template_header(self, index: int, end: int) -> tuple[int, bool, bool]:
        """Skips template headers: where they end, whether one has parameters, whether one has not.

        A ``template`` without ``<`` begins an explicit instantiation.
        """
        is_template = is_instantiation = False
        while self.text(index) == "template":
            if self.text(index + 1) != "<":
                is_instantiation, index = True, index + 1
                break
            closing = self.close_angle(index + 1, end)
            if closing is None:
                break
            is_template = is_template or closing > index + 2
            index = closing + 1
        return index, is_template, is_instantiation

    def _entity(self, begin: int, end: int, scope: tuple[str, ...]) -> int:
        """A function, variable or class."""
        index, is_template, is_instantiation = self._template_header(begin, end)
        declarator = index
        while index < end:
            text = self.text(index)
            if text in _CLASS_KEYS and not is_instantiation and self._opens_class(index, end):
                return self._class(begin, index, end, scope)
            if text == "enum":
                return self._enumeration(index, end)
            if text == ";" and is_instantiation:
                return self._instantiated_name(begin, index, scope)
            if text in (";", "=", "{"):
                after = self._past_semicolon(index, end)
                if self.text(declarator) == "using":
                    self._alias(Run(declarator, after - 1))
                else:
                    statement = Run(declarator, after - 1)
                    self._variables(Run(begin, after), statement, scope, is_template)
                return after
            if text == "(":
                if index > declarator and self._names_function(index):
                    return self._function(
                        begin, index, end, scope, is_template=is_template,
                        is_instantiation=is_instantiation,
                    )  # fmt: skip
                index = self.close(index)
            elif text == "[":
                index = self.close(index)
            elif text == "<" and (closing := self.close_angle(index, end)):
                index = closing
            index += 1
        return end

    def _names_function(self, opening: int) -> bool:
        before = self.tokens[opening - 1]
        if before.text in ("decltype", "alignas", "__attribute__", "noexcept", "explicit"):
            return False
        # `operator()` is followed by its own empty parentheses first.
        if before.text == "operator" and self.text(opening + 2) == "(":
            return False
        return before.kind == "identifier" or before.text == ">" or self._is_operator(opening)

    def _is_operator(self, opening: int) -> bool:
        return any(self.text(opening - back) == "operator" for back in (2, 3))

    def _function(
        self,
        begin: int,
        opening: int,
        end: int,
        scope: tuple[str, ...],
        *,
        is_template: bool,
        is_instantiation: bool,
    ) -> int:
        closing = self.close(opening)
        body, after = self._body(closing + 1, end)
        head = Run(begin, opening)
        attributes = self.attributes(Run(begin, after if body is None else body.begin))
        words = {self.text(i) for i in head}
        self.functions.append(
            Function(
                scope=scope,
                name=self._declared_name(head),
                whole=Run(begin, after),
                head=head,
                parameters=Run(opening + 1, closing),
                body=body,
                is_template=is_template,
                is_instantiation=is_instantiation,
                attributes=tuple(attributes),
                is_kernel="kernel" in words or any(a.name == "kernel" for a in attributes),
            )
        )
        return after

    def _body(self, index: int, end: int) -> tuple[Run | None, int]:
        """A function's body and where the next declaration begins."""
        initializing = False
        while index < end:
            text = self.text(index)
            if text == ";":
                return None, index + 1
            if text == "=":
                return None, self._past_semicolon(index, end)
            if text == ":":
                initializing = True
            if text == "{":
                closing = self.close(index)
                # A brace after a member's name initializes it: `: first{a}, second(b) {`.
                if not (initializing and self.tokens[index - 1].kind == "identifier"):
                    return Run(index + 1, closing), closing + 1
                index = closing
            elif text in ("(", "["):
                index = self.close(index)
            index += 1
        return None, end

    def _alias(self, statement: Run) -> None:
        """Notes what `using X = T` or `typedef T X` declares."""
        if self.text(statement.begin) == "using" and self.text(statement.begin + 2) == "=":
            name = self.text(statement.begin + 1)
            self.aliases.setdefault(name, Run(statement.begin + 3, statement.end))
        elif self.text(statement.begin) == "typedef" and not statement.is_empty:
            name = self.text(statement.end - 1)
            self.aliases.setdefault(name, Run(statement.begin + 1, statement.end - 1))

    def _enumeration(self, index: int, end: int) -> int:
        after = self._past_semicolon(index, end)
        opening = next((i for i in Run(index, after) if self.text(i) in ("{", ";")), after)
        if self.text(opening) == "{":
            self.enumerators.append(Run(opening + 1, self.close(opening)))
        return after

    def _variables(
        self, whole: Run, statement: Run, scope: tuple[str, ...], is_template: bool
    ) -> None:
        first = self.declared_name(statement)
        if first is None or {self.text(i) for i in Run(statement.begin, first)} <= _CLASS_KEYS:
            return  # nothing, or a class that is announced
        common = self.attributes(Run(statement.begin, first))
        for item in self.split(Run(first, statement.end)):
            name = self.declared_name(item)
            if name is None:
                continue
            assign = next((i for i in item if self.text(i) == "="), item.end)
            self.variables.append(
                Variable(
                    scope=scope,
                    name=self.text(name),
                    name_index=name,
                    whole=whole,
                    specifiers=Run(statement.begin, first),
                    initializer=Run(assign + 1, item.end) if assign < item.end else None,
                    attributes=(*common, *self.attributes(item)),
                    is_template=is_template,
                )
            )

    def declared_name(self, run: Run) -> int | None:
        """The index of the first name that ``T *a[2] = x, …`` declares."""
        name = None
        index = run.begin
        while index < run.end and self.text(index) not in _END_NAME:
            if self.is_attribute(index):
                index = self.close(index)
            elif self.text(index) in ("[", ","):
                break
            elif self.text(index) == "(":  # `T (&x)[2]`, or an argument of `alignas`
                inner = self._name_in_parentheses(index)
                if inner is not None:
                    return inner
                index = self.close(index)
            elif closing := self.close_angle(index, run.end):
                index = closing
            elif self.tokens[index].kind == "identifier":
                name = index
            index += 1
        return name

    def _name_in_parentheses(self, opening: int) -> int | None:
        if self.text(opening + 1) not in ("*", "&"):
            return None
        inside = Run(opening + 1, self.close(opening))
        return next((i for i in reversed(inside) if self.tokens[i].kind == "identifier"), None)

    def _instantiated_name(self, begin: int, semicolon: int, scope: tuple[str, ...]) -> int:
        """``template [[host_name("x")]] [[kernel]] decltype(f<T>) f<T>;`` has no parameters."""
        attributes = self.attributes(Run(begin, semicolon))
        if any(a.name == "host_name" for a in attributes):
            head = Run(begin, semicolon)
            self.functions.append(
                Function(
                    scope=scope,
                    name=self._declared_name(head),
                    whole=Run(begin, semicolon + 1),
                    head=head,
                    parameters=Run(semicolon, semicolon),
                    body=None,
                    is_template=False,
                    is_instantiation=True,
                    attributes=tuple(attributes),
                    is_kernel=True,
                )
            )
        return semicolon + 1

    def _declared_name(self, head: Run) -> str:
        """The name that a head declares, template arguments included: ``ns::f<float, uint>``."""
        index = head.end - 1
        while self.text(index) == "]":  # an attribute after the name
            index -= 1
            while index > head.begin and not self.is_attribute(index):
                index -= 1
            index -= 1
        last = index
        if (opening := self.open_angle(index)) is not None:
            index = opening - 1
        # `void ::c10::metal::f` is rooted: the return type is no part of the path.
        while self.text(index - 1) == "::" and self.text(index - 2) != "void":
            index -= 2
            if (opening := self.open_angle(index)) is not None:
                index = opening - 1
        return " ".join(token.text for token in self.tokens[index : last + 1])

    def _opens_class(self, index: int, end: int) -> bool:
        """Whether the class key at ``index`` defines a class, rather than naming a type."""
        index += 1
        while index < end and self.text(index) not in _END_CLASS_HEAD:
            if self.text(index) == "alignas" and self.text(index + 1) == "(":
                index = self.close(index + 1)
            elif self.text(index) == "[":
                index = self.close(index)
            elif closing := self.close_angle(index, end):
                index = closing
            index += 1
        return self.text(index) == "{"

    def _class(self, begin: int, key: int, end: int, scope: tuple[str, ...]) -> int:
        opening = key + 1
        arguments: Run | None = None
        name = ""
        in_bases = False
        while self.text(opening) != "{":
            text = self.text(opening)
            if text == ":":
                in_bases = True
            elif text == "(" or text == "[":
                opening = self.close(opening)
            elif text == "<" and (closing := self.close_angle(opening, end)):
                if not in_bases:
                    arguments = Run(opening + 1, closing)
                opening = closing
            elif not in_bases and self.tokens[opening].kind == "identifier":
                name = text
            opening += 1
        closing = self.close(opening)
        after = self._past_semicolon(closing, end)
        head = ClassHead(scope, name, Run(begin, after), arguments, Run(opening + 1, closing))
        self.classes.append(head)
        self._entered = _OpenScope(head.body, (*scope, head.inner_scope))
        return after

    @cached_property
    def swizzles(self) -> set[str]:
        """The names of two to four components that follow a ``.`` or ``->``."""
        chained = {name for _, name in self.swizzle_chains.values() if len(name) > 1}
        return chained | {self.text(index) for index in self.swizzle_places}

    @cached_property
    def swizzle_chains(self) -> dict[int, tuple[Run, str]]:
        """Each swizzle of a swizzle, ``.zyx.xy``: its run, and the one to write instead, ``zy``."""
        members = {variable.name for variable in self.variables if variable.is_member}
        chains: dict[int, tuple[Run, str]] = {}
        end = 0
        for index in self.swizzle_places:
            if index < end or self.text(index) in members:
                continue
            name, end = self.text(index), index + 1
            while self.text(end) == "." and (picked := _picked(name, self.text(end + 1))):
                name, end = picked, end + 2
            if end > index + 1:
                chains[index] = (Run(index, end), name)
        return chains

    @cached_property
    def swizzle_places(self) -> list[int]:
        """Where a name of two to four components follows a ``.`` or ``->``."""
        return [
            index
            for index, (before, token) in enumerate(
                zip(self.tokens, self.tokens[1:], strict=False), 1
            )
            if before.text in (".", "->")
            and 2 <= len(token.text) <= 4
            and any(set(token.text) <= set(letters) for letters in _COMPONENTS)
        ]


def _picked(name: str, selection: str) -> str | None:
    """The components of a swizzle that another one selects; None where it selects none."""
    for letters in _COMPONENTS:
        if selection and set(selection) <= set(letters[: len(name)]):
            return "".join(name[letters.index(letter)] for letter in selection)
    return None

"""Classes with anonymous structs, made templates: ``union { struct { half d, m; }; half2 dm; };``.

Such a struct may hold half and vectors, which are classes in the shim. g++ refuses a class with
constructors there, except where the member's type depends on a template parameter.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpskit.metal.frontend.structure import ClassHead, Program, Run, Variable

PREFIX = "mpskit_made_template_"
_PARAMETER = "mpskit_any"
_CLASS_KEYS = frozenset({"struct", "class", "union"})
# Types that no class of the shim stands for.
_BUILT_IN = frozenset(
    "bool char uchar short ushort int uint long ulong float unsigned signed size_t ptrdiff_t"
    " int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t const volatile".split()
)
# Where what precedes a name cannot be wrapped as a whole.
_NO_PLAIN_TYPE = frozenset({"*", "&", "(", "["})

Edit = tuple[int, int, str]


def class_edits(program: Program) -> Iterator[Edit]:
    """Replacements in the program's text: begin, end, and what stands there afterwards."""
    members = _members_by_scope(program)
    for outer in program.classes:
        wrapped = [
            run
            for inner in _anonymous_structs(program, outer)
            for run in _class_types(program, members.get(f"@{inner.body.begin - 1}", []))
        ]
        if wrapped and (name := _declared_name(program, outer)):
            yield from _made_template(program, outer, name)
            for run in wrapped:
                begin, end = program.tokens[run.begin].start, program.tokens[run.end - 1].end
                yield begin, begin, f"typename ::mpskit::dependent<{_PARAMETER}, "
                yield end, end, ">::type"


def _members_by_scope(program: Program) -> dict[str, list[Variable]]:
    found: dict[str, list[Variable]] = {}
    for variable in program.variables:
        if variable.is_member:
            found.setdefault(variable.scope[-1], []).append(variable)
    return found


def _anonymous_structs(program: Program, outer: ClassHead) -> Iterator[ClassHead]:
    """The anonymous structs that are members of a class that is not anonymous itself."""
    if _is_anonymous(program, outer):
        return
    path = (*outer.scope, outer.inner_scope)
    for inner in program.classes:
        between = inner.scope[len(path) :]
        if inner.scope[: len(path)] == path and all(name.startswith("@") for name in between):
            is_struct = program.text(inner.whole.begin) == "struct"
            if is_struct and _is_anonymous(program, inner):
                yield inner


def _is_anonymous(program: Program, head: ClassHead) -> bool:
    return not head.name and program.text(head.body.end + 1) == ";"


def _class_types(program: Program, members: list[Variable]) -> Iterator[Run]:
    """The specifiers of members that may have a class for a type."""
    seen: set[int] = set()
    for member in members:
        words = {program.text(i) for i in member.specifiers}
        if member.specifiers.begin in seen or words <= _BUILT_IN or words & _NO_PLAIN_TYPE:
            continue
        seen.add(member.specifiers.begin)
        yield member.specifiers


def _declared_name(program: Program, head: ClassHead) -> str:
    """The name that a class can be given as a template's; nothing where it cannot be one."""
    begin, after = head.whole.begin, head.body.end + 1
    if program.text(begin) == "typedef":
        is_plain = program.text(after + 1) == ";" and head.name in ("", program.text(after))
        return program.text(after) if is_plain else ""
    is_plain = program.text(begin) in _CLASS_KEYS and program.text(after) == ";"
    return head.name if is_plain and not _is_named_elsewhere(program, head) else ""


def _is_named_elsewhere(program: Program, head: ClassHead) -> bool:
    """Whether ``struct Name`` occurs again, which an alias cannot stand for."""
    return any(
        program.text(i) == head.name and program.text(i - 1) in _CLASS_KEYS
        for i in range(len(program.tokens))
        if i not in head.whole
    )


def _made_template(program: Program, head: ClassHead, name: str) -> Iterator[Edit]:
    tokens = program.tokens
    begin, closing = tokens[head.whole.begin], tokens[head.body.end]
    is_typedef = begin.text == "typedef"
    template = f"template <class {_PARAMETER}>"
    yield begin.start, begin.end if is_typedef else begin.start, f"{template} "
    own = [i for i in Run(head.whole.begin, head.body.end) if program.text(i) == head.name]
    for index in own if head.name else ():
        yield tokens[index].start, tokens[index].end, PREFIX + name
    if not head.name:
        key = tokens[head.whole.begin + 1]
        yield key.end, key.end, f" {PREFIX}{name}"
    alias = f"typedef {PREFIX}{name}<void>"
    yield closing.end, closing.end, f"; {alias}" if is_typedef else f"; {alias} {name}"

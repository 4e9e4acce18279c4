"""What Apple's compiler refuses wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator

from mpskit.metal.frontend.kernels import GRAPHICS_TYPE
from mpskit.metal.frontend.positions import BUILTINS
from mpskit.metal.frontend.structure import ADDRESS_SPACES, Program
from mpskit.metal.lint.rules import Finding

_WORDS = {
    "double": ("double", "'double' does not exist in Metal"),
    "goto": ("goto", "'goto' is not supported"),
    "try": ("exception", "'try' is not supported"),
    "throw": ("exception", "'throw' is not supported"),
    "catch": ("exception", "'catch' is not supported"),
    "virtual": ("virtual", "virtual functions are not supported"),
    "new": ("new-delete", "'new' is not supported"),
    "delete": ("new-delete", "'delete' is not supported"),
    "typeid": ("rtti", "'typeid' is not supported"),
    "dynamic_cast": ("rtti", "'dynamic_cast' is not supported"),
    "thread_local": ("thread-local", "'thread_local' is not supported"),
    "asm": ("inline-assembly", "inline assembly is not supported"),
    "__asm__": ("inline-assembly", "inline assembly is not supported"),
    "__asm": ("inline-assembly", "inline assembly is not supported"),
}
_GRAPHICS_FUNCTIONS = frozenset({"vertex", "fragment", "mesh", "object", "intersection", "visible"})


def refused_words(program: Program) -> Iterator[Finding]:
    """Keywords of C++ that Metal leaves out."""
    for index, token in enumerate(program.tokens):
        if token.kind != "identifier" or token.text not in _WORDS:
            continue
        before = program.text(index - 1)
        if before in (".", "->", "#") or (token.text == "delete" and before == "="):
            continue
        rule, message = _WORDS[token.text]
        yield Finding(rule, index, message)


def graphics(program: Program) -> Iterator[Finding]:
    """Textures, ray tracing and the functions of other pipelines."""
    own = {head.name for head in program.classes} | program.aliases.keys()
    for index, token in enumerate(program.tokens):
        if token.kind == "identifier" and GRAPHICS_TYPE.fullmatch(token.text):
            follows = index + 1 < len(program.tokens) and (
                program.tokens[index + 1].kind == "identifier" or program.text(index + 1) == "<"
            )
            if follows and token.text not in own:
                message = f"'{token.text}' is not supported; mpskit runs kernels on buffers"
                yield Finding("texture", index, message)
    for function in program.functions:
        first = program.text(function.head.begin)
        names = {first, *(attribute.name for attribute in function.attributes)}
        kinds = _GRAPHICS_FUNCTIONS & names
        if kinds and function.body is not None and first != function.name:
            message = f"a {min(kinds)} function is no kernel; mpskit runs kernels on buffers"
            yield Finding("texture", function.head.begin, message)


def tensors(program: Program) -> Iterator[Finding]:
    """Metal 4's tensors."""
    own = {head.name for head in program.classes} | program.aliases.keys()
    for index, token in enumerate(program.tokens):
        if token.text in ("tensor", "cooperative_tensor") and program.text(index + 1) == "<":
            space = program.text(index + 2)
            if token.text not in own and (space in ADDRESS_SPACES or token.text != "tensor"):
                message = f"'{token.text}' is not supported; mpskit runs kernels on buffers"
                yield Finding("tensor", index, message)


def program_scope_variables(program: Program) -> Iterator[Finding]:
    """Variables of a program that are neither constant nor a kernel's."""
    for variable in program.variables:
        words = {program.text(i) for i in variable.specifiers}
        if (
            variable.is_member
            or variable.is_template
            or "constant" in words
            or words & {"extern", "friend", "using", "operator", "(", "#", "return"}
            or program.tokens[variable.specifiers.begin].kind != "identifier"
        ):
            continue
        space = min(words & ADDRESS_SPACES, default="")
        where = f"'{variable.name}' is a {space} variable" if space else f"'{variable.name}' is"
        message = f"{where} at program scope, where only constant variables can be"
        if builtin := next((a.name for a in variable.attributes if a.name in BUILTINS), None):
            message = (
                f"'{variable.name}' is [[{builtin}]] at program scope, which mpskit does not "
                "support; make it a parameter of the kernel"
            )
        yield Finding("program-scope-variable", variable.name_index, message)

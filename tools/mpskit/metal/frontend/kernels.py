"""The kernels of a program: host names, parameters and how each parameter is bound."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from mpskit.metal.errors import CompileError, Diagnostic, Location
from mpskit.metal.frontend.constants import evaluate
from mpskit.metal.frontend.function_constants import (
    FunctionConstant,
    check_value,
    function_constants,
)
from mpskit.metal.frontend.positions import BUILTINS, nearest, refusal
from mpskit.metal.frontend.structure import ADDRESS_SPACES, Attribute, Function, Program, Run
from mpskit.metal.frontend.tokens import Source

MAX_THREADS_PER_THREADGROUP = 1024
MAX_BUFFERS = 31
# Templates of which much is asked again for each of their instantiations, which may be thousands.
_REMEMBERED = 256
_ALIAS_DEPTH = 8
_NAME_DEPTH = 8
# Types of what no kernel on buffers has.
GRAPHICS_TYPE = re.compile(
    r"texture(?:1d|2d|3d|cube|2d_ms)(?:_array)?|texture_buffer|sampler"
    r"|depth(?:2d|cube|2d_ms)(?:_array)?|(?:instance|primitive)?_?acceleration_structure"
    r"|(?:visible|intersection)_function_table|intersect(?:or|ion_query)|imageblock"
    r"|mesh_grid_properties"
)
_HOST_NAME = re.compile(r"[^\\\"\x00-\x1f]+")


@dataclass(frozen=True)
class Parameter:
    """How a kernel's parameter is filled.

    ``kind`` is buffer, threadgroup or builtin. A builtin has ``builtin``, the others ``index`` and
    the address space that they point to. A buffer that a function constant leaves out is the
    builtin ``absent``.
    """

    name: str
    kind: str
    index: int = -1
    builtin: str = ""
    space: str = ""
    reference: bool = False


@dataclass(frozen=True)
class Kernel:
    """A kernel as the host sees it.

    ``expression`` is a C++ expression for the function, valid at file scope, or where
    ``instantiation`` says: right behind that explicit instantiation, in its scope.
    """

    host_name: str
    expression: str
    parameters: tuple[Parameter, ...]
    max_threads: int
    instantiation: Function | None
    location: Location


@lru_cache(maxsize=1)
def read_kernels(program: Program) -> Sequence[Kernel]:
    """All kernels that a host can launch, in source order.

    A kernel template is launched through its explicit instantiations only.

    Raises:
        CompileError: a parameter that nothing binds, two kernels of one host name, an
            instantiation of no known template.
    """
    kernels: list[Kernel] = []
    for function in program.functions:
        if function.is_instantiation and _host_name(program, function):
            kernels.append(_instantiated(program, function))
        elif function.is_kernel and not function.is_template and function.body is not None:
            kernels.append(_plain(program, function))
    names: set[str] = set()
    for kernel, function in zip(kernels, _launchable(program), strict=True):
        if kernel.host_name in names:
            raise _error(program, function.whole.begin, f"two kernels named {kernel.host_name!r}")
        names.add(kernel.host_name)
    return kernels


def _launchable(program: Program) -> list[Function]:
    return [
        f
        for f in program.functions
        if (f.is_instantiation and _host_name(program, f))
        or (not f.is_instantiation and f.is_kernel and not f.is_template and f.body is not None)
    ]


def _host_name(program: Program, function: Function) -> str | None:
    for attribute in function.attributes:
        if attribute.name == "host_name":
            # Adjacent literals join, as `#NAME "_" #DTYPE` makes them.
            name = "".join(t.text[1:-1] for t in Source(attribute.arguments).tokens)
            if not _HOST_NAME.fullmatch(name):
                what = f"host_name takes a string without escapes, not '{attribute.arguments}'"
                raise _error(program, function.whole.begin, what)
            return name
    return None


def _plain(program: Program, function: Function) -> Kernel:
    _check_return_type(program, function)
    path = "::".join(("", *function.scope, function.name))
    return Kernel(
        host_name=_host_name(program, function) or path.removeprefix("::"),
        expression=f"&{path}",
        parameters=_parameters(program, function),
        max_threads=_max_threads(program, (function,)),
        instantiation=None,
        location=_location(program, function),
    )


def _check_return_type(program: Program, function: Function) -> None:
    hidden = {i for span in program.attribute_spans(function.head) for i in span}
    names = [i for i in function.head if program.tokens[i].kind == "identifier" and i not in hidden]
    texts = [program.text(i) for i in names]
    kind = [text for text in texts if text not in ("kernel", "static", "inline", "extern")]
    if len(kind) > 1 and kind[0] != "void" and kind[0] not in program.aliases:
        what = f"kernel '{function.name}' returns {kind[0]}; kernels return void"
        raise _error(program, function.head.begin, what, rule="kernel-return")


def _instantiated(program: Program, function: Function) -> Kernel:
    templates = _templates_of(program, function)
    if not templates:
        name = function.name.partition("<")[0].replace(" ", "")
        raise _error(program, function.whole.begin, f"no kernel template is named '{name}'")
    # Of overloads the one that is meant, of its declarations the one that says most: a forward
    # declaration need not carry the attributes.
    given = _parameter_types(program, function)
    template = max(
        templates,
        key=lambda f: (
            _likeness(_parameter_types(program, f), given),
            f.body is not None,
            len(f.attributes),
        ),
    )
    expression = f"&{function.name}"
    overloaded = len({f.parameters for f in templates if f.body is not None}) > 1
    if not function.parameters.is_empty and ("<" not in function.name or overloaded):
        expression = f"static_cast<void (*)({{parameters}})>({expression})"
    return Kernel(
        host_name=_host_name(program, function) or function.name,
        expression=expression,
        parameters=_parameters(program, template),
        max_threads=_max_threads(program, (function, template)),
        instantiation=function,
        location=_location(program, function),
    )


@lru_cache(maxsize=_REMEMBERED)
def _parameter_types(program: Program, function: Function) -> list[list[str]]:
    """The tokens of each parameter's type."""
    types = []
    for run in program.split(function.parameters):
        hidden = {i for span in program.attribute_spans(run) for i in span}
        hidden |= {name} if (name := program.declared_name(run)) is not None else set()
        types.append([program.text(i) for i in run if i not in hidden])
    return types


def _likeness(parameters: list[list[str]], given: list[list[str]]) -> int:
    """How well an instantiation's parameters fit a template's: alike where nothing varies."""
    if len(parameters) != len(given):
        return -1
    return sum(p == g for p, g in zip(parameters, given, strict=True))


def _location(program: Program, function: Function) -> Location:
    return program.source.locate(program.tokens[function.whole.begin].start)


def _templates_of(program: Program, instantiation: Function) -> list[Function]:
    """The templates that an instantiation can mean, found from its scope outwards, as C++ does."""
    path = instantiation.name.partition("<")[0].replace(" ", "").removeprefix("::").split("::")
    found = [
        f
        for f in _templates(program).get(path[-1], ())
        if [*f.scope, path[-1]][-len(path) :] == path
        and (f.is_kernel or f.body is None or instantiation.parameters.is_empty)
    ]
    for depth in range(len(instantiation.scope), -1, -1):
        scope = (*instantiation.scope[:depth], *path[:-1])
        if visible := [f for f in found if f.scope == scope]:
            return visible
    return found


@lru_cache(maxsize=1)
def _templates(program: Program) -> dict[str, list[Function]]:
    """The function templates by name."""
    found: dict[str, list[Function]] = {}
    for function in program.functions:
        if function.is_template and not function.is_instantiation:
            found.setdefault(function.name.partition("<")[0], []).append(function)
    return found


def _max_threads(program: Program, functions: Sequence[Function]) -> int:
    """Of a kernel's template, whose attribute may use its parameters, and an instantiation."""
    parameters = _template_arguments(program, *functions) if len(functions) == 2 else {}
    names = Names(program, parameters)
    for function in functions:
        for attribute in function.attributes:
            if attribute.name == "max_total_threads_per_threadgroup":
                return min(_constant(names, attribute, function.head), MAX_THREADS_PER_THREADGROUP)
    return MAX_THREADS_PER_THREADGROUP


def _template_arguments(
    program: Program, instantiation: Function, template: Function
) -> dict[str, list[str]]:
    """The instantiation's template arguments, or defaults, by the template's parameters."""
    header = template.head.begin + 1
    closing = program.close_angle(header, template.head.end)
    if closing is None:
        return {}
    argument_list = Program(Source(instantiation.name))
    end = len(argument_list.tokens)
    opening = argument_list.open_angle(end - 1)
    given = argument_list.split(Run(opening + 1, end - 1)) if opening is not None else []
    arguments: dict[str, list[str]] = {}
    for number, run in enumerate(program.split(Run(header + 1, closing))):
        texts = [program.text(i) for i in run]
        name, _, default = _partition(texts)
        if number < len(given):
            arguments[name[-1]] = [argument_list.text(i) for i in given[number]]
        elif default and name:
            arguments[name[-1]] = default
    return arguments


def _partition(texts: list[str]) -> tuple[list[str], str, list[str]]:
    if "=" not in texts:
        return texts, "", []
    at = texts.index("=")
    return texts[:at], "=", texts[at + 1 :]


class Names:
    """Values of names in a kernel's attributes."""

    def __init__(self, program: Program, template_arguments: Mapping[str, list[str]]) -> None:
        self.program = program
        self._template_arguments = template_arguments
        self._values: dict[str, int | None] = {}
        self._depth = 0  # of names that stand for other names

    def evaluate(self, texts: Sequence[str]) -> int | None:
        """The value of a constant expression, None where it has none."""
        return evaluate(self._with_answers(texts), self._value)

    def _with_answers(self, texts: Sequence[str]) -> list[str]:
        """The tokens, with the answer for each ``is_function_constant_defined(name)``."""
        answered = list(texts)
        while "is_function_constant_defined" in answered[:-3]:
            at = answered.index("is_function_constant_defined")
            constant = self._function_constants.get(answered[at + 2])
            defined = constant is not None and constant.value is not None
            answered[at : at + 4] = ["true" if defined else "false"]
        return answered

    @cached_property
    def _function_constants(self) -> dict[str, FunctionConstant]:
        return function_constants(self.program)

    def _value(self, name: str) -> int | None:
        if name not in self._values:
            if self._depth > _NAME_DEPTH:
                return None
            self._values[name] = None  # as long as it is being found: it may name itself
            self._depth += 1
            self._values[name] = self._value_of(name)
            self._depth -= 1
        return self._values[name]

    def _value_of(self, name: str) -> int | None:
        if name in self._template_arguments:
            return self.evaluate(self._template_arguments[name])
        if constant := self._function_constants.get(name):
            check_value(self.program, constant)
            return int(constant.value) if isinstance(constant.value, (bool, int)) else None
        values = {
            self.evaluate([self.program.text(i) for i in variable.initializer])
            for variable in self.program.variables
            if variable.name == name and variable.initializer
        }
        values |= {v for body in self.program.enumerators for v in self._enumerated(body, name)}
        return values.pop() if len(values) == 1 else None

    def _enumerated(self, body: Run, name: str) -> Iterator[int | None]:
        following: int | None = 0
        for item in self.program.split(body):
            texts = [self.program.text(i) for i in item]
            value = self.evaluate(texts[2:]) if texts[1:2] == ["="] else following
            if texts[0] == name:
                yield value
            following = None if value is None else value + 1


def _constant(names: Names, attribute: Attribute, at: Run) -> int:
    value = names.evaluate([t.text for t in Source(attribute.arguments).tokens])
    if value is None or value < 0:
        what = f"'{attribute.name}' takes an integer constant, not '{attribute.arguments}'"
        raise _error(names.program, at.begin, what)
    return value


@lru_cache(maxsize=_REMEMBERED)
def _parameters(program: Program, function: Function) -> tuple[Parameter, ...]:
    names = Names(program, {})
    parameters = [_parameter(names, run) for run in program.split(function.parameters)]
    for kind in ("buffer", "threadgroup"):
        free = iter(
            sorted(set(range(MAX_BUFFERS + 1)) - {p.index for p in parameters if p.kind == kind})
        )
        parameters = [
            replace(p, index=next(free, MAX_BUFFERS)) if p.kind == kind and p.index < 0 else p
            for p in parameters
        ]
    bound: dict[tuple[str, int], Parameter] = {}
    for parameter, run in zip(parameters, program.split(function.parameters), strict=True):
        key = (parameter.kind, parameter.index)
        if parameter.index >= 0 and (first := bound.setdefault(key, parameter)) is not parameter:
            where = f"{parameter.kind} index {parameter.index}"
            what = f"'{first.name}' and '{parameter.name}' are both at {where}"
            raise _error(program, run.begin, what, rule="buffer-index")
        if parameter.index >= MAX_BUFFERS:
            what = f"{parameter.kind} index {parameter.index}: the last one is {MAX_BUFFERS - 1}"
            raise _error(program, run.begin, what, rule="buffer-index")
    return tuple(parameters)


def _parameter(names: Names, run: Run) -> Parameter:
    program = names.program
    attributes = program.attributes(run)
    name_index = program.declared_name(run)
    name = program.text(name_index) if name_index is not None else ""
    texts = _declared_type(program, run)
    space = next((t for t in texts if t in ADDRESS_SPACES), None)
    if "*" in texts or "&" in texts or _is_array(program, name_index):
        if _is_left_out(names, attributes, run):
            return Parameter(name, "builtin", builtin="absent")
        kind = "threadgroup" if space == "threadgroup" else "buffer"
        return Parameter(
            name,
            kind,
            next((_constant(names, a, run) for a in attributes if a.name == kind), -1),
            space=space or "",
            reference="&" in texts,
        )
    for attribute in attributes:
        if attribute.name in BUILTINS:
            if what := refusal(attribute.name, texts):
                raise _error(program, run.begin, what, rule="kernel-parameter")
            return Parameter(name, "builtin", builtin=attribute.name)
    raise _unbound(program, run, name, attributes, texts)


def _unbound(
    program: Program, run: Run, name: str, attributes: Sequence[Attribute], texts: Sequence[str]
) -> CompileError:
    """Says why nothing fills a parameter."""
    if any(a.name in ("texture", "sampler", "texture_buffer") for a in attributes) or any(
        GRAPHICS_TYPE.fullmatch(text) for text in texts
    ):
        what = f"'{name}' is a texture, sampler or the like; mpskit runs kernels on buffers"
        return _error(program, run.begin, what, rule="texture")
    if "tensor" in texts and "<" in texts:
        what = f"'{name}' is a tensor; mpskit runs kernels on buffers"
        return _error(program, run.begin, what, rule="tensor")
    if any(a.name == "buffer" for a in attributes):
        kind = " ".join(t for t in texts if t not in ("const", name))
        what = f"parameter '{name}' is a value in a buffer: write 'constant {kind}& {name}'"
        return _error(program, run.begin, what, rule="kernel-parameter")
    known = ", ".join(f"[[{a.name}]]" for a in attributes) or "no attribute"
    near = next((n for a in attributes if (n := nearest(a.name))), "")
    what = f"parameter '{name}' has {known}; a value parameter needs one that gives a position"
    return _error(program, run.begin, what + near, rule="kernel-parameter")


def _is_array(program: Program, name: int | None) -> bool:
    """Whether a parameter is declared as an array, which makes it a pointer."""
    return name is not None and program.text(name + 1) == "[" and not program.is_attribute(name + 1)


def _declared_type(program: Program, run: Run) -> list[str]:
    """A parameter's tokens without attributes and default, its aliases of pointers resolved."""
    hidden = {i for span in program.attribute_spans(run) for i in span}
    texts = [program.text(i) for i in run if i not in hidden]
    if "=" in texts:
        texts = texts[: texts.index("=")]
    for _ in range(_ALIAS_DEPTH):
        if "*" in texts or "&" in texts:
            return texts
        aliased = [t for t in texts if t in program.aliases]
        if not aliased:
            break
        texts = [t for t in texts if t in ADDRESS_SPACES]
        texts += [program.text(i) for name in aliased for i in program.aliases[name]]
    return texts


def _is_left_out(names: Names, attributes: Sequence[Attribute], run: Run) -> bool:
    return any(a.name == "function_constant" and not _constant(names, a, run) for a in attributes)


def _error(program: Program, index: int, message: str, *, rule: str = "") -> CompileError:
    where = program.source.locate(program.tokens[index].start)
    return CompileError([Diagnostic(where, "error", message, rule)])

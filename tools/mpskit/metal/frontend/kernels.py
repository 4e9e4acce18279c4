"""The kernels of a program: host names, parameters and how each parameter is bound."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mpskit.metal.errors import CompileError, Diagnostic
from mpskit.metal.frontend.structure import ADDRESS_SPACES, Attribute, Function, Program, Run

# MSL's kernel attributes that say where a thread stands; all are fields of abi::Thread, or
# functions of them (see codegen/entry.h).
BUILTINS = frozenset(
    {
        "thread_position_in_grid",
        "thread_position_in_threadgroup",
        "thread_index_in_threadgroup",
        "thread_index_in_simdgroup",
        "thread_index_in_quadgroup",
        "threadgroup_position_in_grid",
        "threads_per_grid",
        "threads_per_threadgroup",
        "threads_per_simdgroup",
        "threadgroups_per_grid",
        "thread_execution_width",
        "dispatch_threads_per_threadgroup",
        "dispatch_simdgroups_per_threadgroup",
        "dispatch_quadgroups_per_threadgroup",
        "simdgroup_index_in_threadgroup",
        "simdgroups_per_threadgroup",
        "quadgroup_index_in_threadgroup",
        "quadgroups_per_threadgroup",
        "grid_origin",
        "grid_size",
    }
)
MAX_THREADS_PER_THREADGROUP = 1024
MAX_BUFFERS = 31


@dataclass(frozen=True)
class Parameter:
    """How a kernel's parameter is filled.

    ``kind`` is buffer, threadgroup or builtin. A builtin has ``builtin``, the others ``index`` and
    the address space that they point to.
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


def read_kernels(program: Program) -> list[Kernel]:
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
            return "".join(ast.literal_eval(part) for part in _string_literals(attribute.arguments))
    return None


def _string_literals(text: str) -> list[str]:
    parts, start = [], None
    escaped = False
    for at, letter in enumerate(text):
        if letter == '"' and not escaped:
            if start is None:
                start = at
            else:
                parts.append(text[start : at + 1])
                start = None
        escaped = letter == "\\" and not escaped
    return parts


def _plain(program: Program, function: Function) -> Kernel:
    path = "::".join(("", *function.scope, function.name))
    return Kernel(
        host_name=_host_name(program, function) or path.removeprefix("::"),
        expression=f"&{path}",
        parameters=_parameters(program, function),
        max_threads=_max_threads(program, (function,)),
        instantiation=None,
    )


def _instantiated(program: Program, function: Function) -> Kernel:
    templates = _templates_of(program, function)
    if not templates:
        name = function.name
        raise _error(program, function.whole.begin, f"no kernel template is named {name!r}")
    # The template that says most: a forward declaration need not carry the attributes.
    template = max(templates, key=lambda f: (f.body is not None, len(f.attributes)))
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
    )


def _templates_of(program: Program, instantiation: Function) -> list[Function]:
    path = instantiation.name.partition("<")[0].replace(" ", "").removeprefix("::").split("::")
    return [
        f
        for f in program.functions
        if f.is_template and not f.is_instantiation
        and [*f.scope, f.name.partition("<")[0]][-len(path) :] == path
        and (f.is_kernel or f.body is None or instantiation.parameters.is_empty)
    ]  # fmt: skip


def _max_threads(program: Program, functions: Sequence[Function]) -> int:
    for function in functions:
        for attribute in function.attributes:
            if attribute.name == "max_total_threads_per_threadgroup":
                if attribute.arguments.isdigit():
                    return min(int(attribute.arguments), MAX_THREADS_PER_THREADGROUP)
                what = f"'{attribute.name}' takes a number, not '{attribute.arguments}'"
                raise _error(program, function.whole.begin, what)
    return MAX_THREADS_PER_THREADGROUP


def _parameters(program: Program, function: Function) -> tuple[Parameter, ...]:
    parameters = [_parameter(program, run) for run in program.split(function.parameters)]
    for kind in ("buffer", "threadgroup"):
        free = iter(
            sorted(set(range(MAX_BUFFERS + 1)) - {p.index for p in parameters if p.kind == kind})
        )
        parameters = [
            replace(p, index=next(free)) if p.kind == kind and p.index < 0 else p
            for p in parameters
        ]
    for parameter, run in zip(parameters, program.split(function.parameters), strict=True):
        if parameter.index >= MAX_BUFFERS:
            what = f"buffer index {parameter.index}: the last one is {MAX_BUFFERS - 1}"
            raise _error(program, run.begin, what)
    return tuple(parameters)


def _parameter(program: Program, run: Run) -> Parameter:
    attributes = program.attributes(run)
    inside = {i for span in program.attribute_spans(run) for i in span}
    visible = [i for i in run if i not in inside]
    texts = [program.text(i) for i in visible]
    if "=" in texts:
        texts = texts[: texts.index("=")]
    names = [t for i, t in zip(visible, texts, strict=False)
             if program.tokens[i].kind == "identifier"]  # fmt: skip
    name = names[-1] if names else ""
    space = next((t for t in texts if t in ADDRESS_SPACES), None)
    if "*" in texts or "&" in texts:
        kind = "threadgroup" if space == "threadgroup" else "buffer"
        return Parameter(
            name,
            kind,
            _bound_index(attributes, kind),
            space=space or "",
            reference="&" in texts,
        )
    for attribute in attributes:
        if attribute.name in BUILTINS:
            return Parameter(name, "builtin", builtin=attribute.name)
    if any(a.name in ("texture", "sampler", "texture_buffer") for a in attributes):
        what = f"'{name}' is a texture or sampler; only buffers and thread positions are supported"
        raise _error(program, run.begin, what)
    known = ", ".join(f"[[{a.name}]]" for a in attributes) or "no attribute"
    what = f"parameter '{name}' has {known}; a value parameter needs one that gives a position"
    raise _error(program, run.begin, what)


def _bound_index(attributes: Sequence[Attribute], kind: str) -> int:
    for attribute in attributes:
        if attribute.name == kind and attribute.arguments.isdigit():
            return int(attribute.arguments)
    return -1


def _error(program: Program, index: int, message: str) -> CompileError:
    where = program.source.locate(program.tokens[index].start)
    return CompileError([Diagnostic(where, "error", message)])

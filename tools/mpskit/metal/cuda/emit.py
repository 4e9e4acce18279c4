"""The translation unit of a kernel library for NVRTC: shim, erased program, entry points, table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mpskit.metal.codegen.emit import (
    ENTRY_POINTS,
    erased_program,
    function_of,
    swizzle_macros,
)
from mpskit.metal.frontend.erase import Eraser, ThreadgroupVariable
from mpskit.metal.frontend.kernels import Kernel, Parameter
from mpskit.metal.frontend.structure import Program

# NVRTC declares CUDA's functions and vector types in front of every program, at global scope. In a
# namespace, the program's own hide them.
NAMESPACE = "mpskit_program"
POINTEES_SYMBOL = "mpskit_pointees"
DESCRIPTION_SYMBOL = "mpskit_description"
# Bytes of the largest `constant T&` that is an argument itself; all 31 fit in CUDA's 32764.
BY_VALUE_LIMIT = 1024

_PREAMBLE = """\
#define MPSKIT_TARGET_CUDA 1
#define MPSKIT_BY_VALUE_LIMIT {by_value_limit}
{swizzles}
{aliases}
namespace {namespace} {{
#include "mpskit_shim.h"
#include "entry.h"
#include "launch.h"
"""

_ENTRY = """\
static constexpr auto kernel_{number} = {function};
using Function_{number} = decltype(kernel_{number});
extern "C" __global__ void __launch_bounds__({max_threads}) {symbol}(
    {parameters}) {{
  const Thread thread = this_thread(dispatch);
  if (!exists(dispatch, thread)) return;
  kernel_{number}(
      {arguments});
}}
"""

_TABLE = """\
extern "C" __device__ abi::Pointee {pointees_symbol}[] = {{
{pointees}
    {{}}}};
extern "C" __device__ char {description_symbol}[] = {description};

}} // namespace mpskit::cuda
}} // namespace {namespace}
"""


@dataclass(frozen=True)
class BoundParameter:
    """A parameter that the host fills, as the library's description says it.

    ``kind`` is buffer or threadgroup. ``is_constant_reference``: a ``constant T&``, sent by value
    where it is no larger than ``BY_VALUE_LIMIT``.
    """

    name: str
    kind: str
    index: int
    is_constant_reference: bool


@dataclass(frozen=True)
class KernelDescription:
    """A kernel and, in the order of its entry point's arguments, its parameters."""

    name: str
    symbol: str
    max_threads: int
    parameters: tuple[BoundParameter, ...]


def translation_unit(program: Program, kernels: Sequence[Kernel]) -> str:
    """CUDA C++: every kernel's entry point behind the erased program."""
    preamble = _PREAMBLE.format(
        by_value_limit=BY_VALUE_LIMIT,
        swizzles=swizzle_macros(program.swizzles),
        aliases="\n".join(_aliases(program)),
        namespace=NAMESPACE,
    )
    body = erased_program(
        program,
        kernels,
        Eraser(program, _declare_threadgroup_variables),
        ((index, " constexpr") for index in _program_constants(program)),
    )
    return "\n".join([preamble, body, _entries(kernels)])


def read_description(text: str) -> list[KernelDescription]:
    """The kernels that a compiled library says it has."""
    return [
        KernelDescription(
            **{**kernel, "parameters": tuple(BoundParameter(**p) for p in kernel["parameters"])}
        )
        for kernel in json.loads(text)
    ]


def _aliases(program: Program) -> Iterator[str]:
    """What makes `::metal` and the program's own `::name` lead into the program's namespace."""
    for name in sorted({"metal", "mpskit", *_namespaces(program)}):
        yield f"namespace {NAMESPACE} {{ namespace {name} {{}} }}"
        yield f"namespace {name} = {NAMESPACE}::{name};"


def _namespaces(program: Program) -> Iterator[str]:
    """Names of the namespaces at file scope."""
    index = 0
    while index < len(program.tokens):
        text = program.text(index)
        if text in ("{", "(", "["):
            index = program.close(index)
        elif text == "namespace" and program.text(index - 1) != "using":
            name = program.tokens[index + 1]
            if name.kind == "identifier" and program.text(index + 2) != "=":
                yield name.text
        index += 1


def _program_constants(program: Program) -> Iterator[int]:
    """Where `constant` declares a variable at namespace scope, with a value.

    A GPU initializes nothing when it loads a program, so that one constant's value can depend on
    another's only at compile time.
    """
    index = 0
    while index < len(program.tokens):
        text = program.text(index)
        if text in ("(", "[") or (text == "{" and not _opens_namespace(program, index)):
            index = program.close(index)
        elif text == "constant" and _has_value(program, index):
            yield index
        index += 1


def _opens_namespace(program: Program, brace: int) -> bool:
    at = brace - 1
    while program.text(at) == "::" or (
        program.tokens[at].kind == "identifier" and program.text(at) != "namespace"
    ):
        at -= 1
    return at >= 0 and program.text(at) == "namespace"


def _has_value(program: Program, constant: int) -> bool:
    """Whether a variable follows that is no pointer, has a value, and is not constexpr anyway."""
    if "constexpr" in (program.text(constant - 1), program.text(constant - 2)):
        return False
    at = constant + 1
    while program.text(at) not in ("=", "{", ";", "(", "*", "&", "constexpr", ""):
        at += 1
    return program.text(at) in ("=", "{")


def _declare_threadgroup_variables(kind: str, variables: Sequence[ThreadgroupVariable]) -> str:
    return f"__shared__ {kind} {', '.join(f'{v.name}{v.extents}' for v in variables)}"


def _entries(kernels: Sequence[Kernel]) -> str:
    parts = [f'# 1 "{ENTRY_POINTS}"', "namespace mpskit::cuda {\n"]
    pointees = []
    for number, kernel in enumerate(kernels):
        bound = [(i, p) for i, p in enumerate(kernel.parameters) if p.kind != "builtin"]
        declared = (_declaration(i, p, number) for i, p in bound)
        parts.append(
            _ENTRY.format(
                number=number,
                function=function_of(number, kernel, root=f"::{NAMESPACE}"),
                max_threads=kernel.max_threads,
                symbol=_symbol(number, kernel),
                parameters=",\n    ".join(["const __grid_constant__ Dispatch dispatch", *declared]),
                arguments=",\n      ".join(
                    _argument(i, p, number) for i, p in enumerate(kernel.parameters)
                ),
            )
        )
        pointees += [f"    entry::pointee<{i}, Function_{number}>()," for i, _ in bound]
    description = json.dumps([_described(n, kernel) for n, kernel in enumerate(kernels)])
    parts.append(
        _TABLE.format(
            pointees_symbol=POINTEES_SYMBOL,
            pointees="\n".join(pointees),
            description_symbol=DESCRIPTION_SYMBOL,
            description=json.dumps(description),
            namespace=NAMESPACE,
        )
    )
    return "\n".join(parts)


def _symbol(number: int, kernel: Kernel) -> str:
    """The entry point's name: the kernel's for whoever profiles it, made unique and a C one."""
    return f"metal_{number}_{re.sub('[^A-Za-z0-9_]', '_', kernel.host_name)}"


def _is_constant_reference(parameter: Parameter) -> bool:
    return parameter.reference and parameter.space == "constant"


def _declaration(position: int, parameter: Parameter, number: int) -> str:
    """The entry point's parameter for one of the kernel's."""
    at = f"<{position}, Function_{number}>"
    if parameter.kind == "threadgroup":
        return f"unsigned t{parameter.index}"
    if _is_constant_reference(parameter):
        return f"const __grid_constant__ ConstantOf{at} b{parameter.index}"
    # `constant` memory does not change while a kernel runs, which is all that __restrict__ says
    # of a pointer that is only read through.
    restrict = " __restrict__" if parameter.space == "constant" else ""
    return f"entry::PointeeOf{at}*{restrict} b{parameter.index}"


def _argument(position: int, parameter: Parameter, number: int) -> str:
    if parameter.kind == "builtin":
        return f"builtins::{parameter.builtin}(thread)"
    if _is_constant_reference(parameter):
        return f"b{parameter.index}.get()"
    pointer = f"b{parameter.index}"
    if parameter.kind == "threadgroup":
        pointer = f"threadgroup_buffer<{position}, Function_{number}>(t{parameter.index})"
    return f"*{pointer}" if parameter.reference else pointer


def _described(number: int, kernel: Kernel) -> dict[str, object]:
    return {
        "name": kernel.host_name,
        "symbol": _symbol(number, kernel),
        "max_threads": kernel.max_threads,
        "parameters": [
            {
                "name": p.name,
                "kind": p.kind,
                "index": p.index,
                "is_constant_reference": _is_constant_reference(p),
            }
            for p in kernel.parameters
            if p.kind != "builtin"
        ],
    }

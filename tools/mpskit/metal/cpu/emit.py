"""The translation unit of a kernel library: shim, erased program, entry points, table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mpskit.metal.codegen.emit import (
    ENTRY_POINTS,
    erased_program,
    function_of,
    swizzle_macros,
)
from mpskit.metal.frontend.erase import Eraser, ThreadgroupVariable
from mpskit.metal.frontend.kernels import Kernel, Parameter
from mpskit.metal.frontend.structure import Program

TABLE_SYMBOL = "mpskit_kernel_table"
BIND_SYMBOL = "mpskit_bind_runtime"

_PREAMBLE = """\
#define MPSKIT_TARGET_CPU 1
{swizzles}
#include "mpskit_shim.h"
#include "kernel_support.h"
"""
# Accesses inside the shim are told by the line that called it, which inlining keeps known.
_SANITIZED_PREAMBLE = """\
#if defined(__clang__) && {copies_can_be_checked:d}
#define MPSKIT_CHECK_COPIES 1
#endif
#define inline inline __attribute__((always_inline))
{preamble}
#undef inline
#include "sanitizer/hooks.h"
"""

_ENTRY = """\
static constexpr auto kernel_{number} = {function};
static void entry_{number}(
    [[maybe_unused]] const Thread& thread,
    [[maybe_unused]] void* const* buffers,
    [[maybe_unused]] void* const* threadgroup_buffers) {{
  kernel_{number}({arguments});
}}
static constexpr abi::Parameter parameters_{number}[] = {{{parameters}{{}}}};
"""

_TABLE = """\
static constexpr abi::Kernel kernels[] = {{
{rows}
    {{}}}};

}} // namespace mpskit::cpu

// Not watched: while the library is loaded there is nobody to tell.
#define MPSKIT_EXPORT \\
  extern "C" __attribute__((visibility("default"), no_sanitize("thread")))
MPSKIT_EXPORT const mpskit::abi::Kernel* {table}() {{
  return mpskit::cpu::kernels;
}}
MPSKIT_EXPORT void {bind}(const mpskit::abi::Runtime* runtime) {{
  mpskit::target::runtime = runtime;
}}
"""


def translation_unit(program: Program, kernels: Sequence[Kernel]) -> str:
    """C++ for the cpu backend: every kernel's entry point behind the erased program."""
    eraser = Eraser(program, _declare_threadgroup_variables, _mark_collective_call)
    return "\n".join(
        [
            _PREAMBLE.format(swizzles=swizzle_macros(program.swizzles)),
            erased_program(program, kernels, eraser),
            _entries(kernels),
        ]
    )


def sanitized_translation_unit(program: Program, kernels: Sequence[Kernel]) -> str:
    """As `translation_unit`, for a compiler that instruments accesses.

    Marks say what operation stands there, and kernels say at which ``return`` they end.
    """

    def mark(position: int, in_kernel: bool) -> str:
        return _mark_collective_call(_place(position, _operation(program, position)), in_kernel)

    eraser = Eraser(program, _declare_threadgroup_variables, mark)
    return "\n".join(
        [
            _SANITIZED_PREAMBLE.format(
                preamble=_PREAMBLE.format(swizzles=swizzle_macros(program.swizzles)),
                copies_can_be_checked=not _has_unions(program),
            ),
            erased_program(program, kernels, eraser, _marked_returns(program)),
            _entries(kernels),
        ]
    )


def _has_unions(program: Program) -> bool:
    """Whether copies must stay trivial: C++ copies no union whose members are copied by code."""
    return any(token.text == "union" for token in program.tokens)


# abi::Operation.
_OTHER, _QUAD, _OF_ACTIVE_LANES = 0, 1, 2
_OPERATION_BITS = 2
# Defined by which lanes are active, so no mistake in divergent flow.
_FOR_DIVERGENT_FLOW = re.compile(
    r"(?:simd|quad)_(?:is_first|active_threads_mask|broadcast_first|is_helper_thread)"
)


def _place(position: int, operation: int) -> int:
    return position << _OPERATION_BITS | operation


def _operation(program: Program, begin: int) -> int:
    """Of the call that begins at a token: its name is the last one ahead of its arguments."""
    while program.text(begin + 1) == "::" or program.text(begin) == "::":
        begin += 1
    name = program.text(begin)
    if _FOR_DIVERGENT_FLOW.fullmatch(name):
        return _OF_ACTIVE_LANES
    return _QUAD if name.startswith("quad_") else _OTHER


def _marked_returns(program: Program) -> Iterator[tuple[int, str]]:
    """What goes behind each ``return`` of a kernel: its value, of type void, says where it is."""
    for function in program.functions:
        if function.is_kernel and function.body is not None:
            for index in function.body:
                if program.text(index) == "return" and program.text(index + 1) == ";":
                    yield index, f" ::mpskit::cpu::at_return({_place(index, _OTHER)})"


def _declare_threadgroup_variables(kind: str, variables: Sequence[ThreadgroupVariable]) -> str:
    declarators = (
        f'(&{v.name}){v.extents} = ::mpskit::cpu::ThreadgroupVariable{{{v.site}, "{v.name}"}}'
        for v in variables
    )
    return f"{kind} {', '.join(declarators)}"


def _mark_collective_call(position: int, in_kernel: bool) -> str:
    return f"::mpskit::cpu::at{'_kernel' if in_kernel else ''}({position})"


def _entries(kernels: Sequence[Kernel]) -> str:
    parts = [f'# 1 "{ENTRY_POINTS}"', "namespace mpskit::cpu {\n"]
    rows = []
    for number, kernel in enumerate(kernels):
        bound = [(i, p) for i, p in enumerate(kernel.parameters) if p.kind != "builtin"]
        described = (
            f'{{"{p.name}", ParameterKind::{p.kind}, {p.index}, '
            f"entry::pointee<{i}, decltype(kernel_{number})>()}}, "
            for i, p in bound
        )
        parts.append(
            _ENTRY.format(
                number=number,
                function=function_of(number, kernel),
                arguments=", ".join(map(_argument, kernel.parameters)),
                parameters="".join(described),
            )
        )
        rows.append(
            f'    {{"{kernel.host_name}", entry_{number}, parameters_{number}, {len(bound)},'
            f" {kernel.max_threads}}},"
        )
    parts.append(_TABLE.format(rows="\n".join(rows), table=TABLE_SYMBOL, bind=BIND_SYMBOL))
    return "\n".join(parts)


def _argument(parameter: Parameter) -> str:
    if parameter.kind == "builtin":
        return f"builtins::{parameter.builtin}(thread)"
    array = "buffers" if parameter.kind == "buffer" else "threadgroup_buffers"
    wrapper = "Reference" if parameter.reference else "Pointer"
    return f"{wrapper}{{{array}[{parameter.index}]}}"

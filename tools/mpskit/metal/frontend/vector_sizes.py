"""Template parameters that are a vector's size: ``template <uint N> float f(vec<float, N> x)``.

To Metal's compiler a vector's size is no template argument, and is deduced for a parameter of any
integer type. To C++ the type must be that of `vec`'s own parameter.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpskit.metal.frontend.structure import Program, Run

_SIZES = frozenset(
    "uint unsigned ushort short uchar char ulong long size_t uint8_t uint16_t uint32_t uint64_t"
    " int8_t int16_t int64_t".split()
)
_SIZED = frozenset({"vec", "packed_vec", "matrix"})


def vector_sizes(program: Program) -> Iterator[int]:
    """The tokens of such parameters' types."""
    for head in program.classes:
        if head.arguments is not None:
            yield from _sizes(program, Run(head.whole.begin, head.body.begin), head.arguments)
    for function in program.functions:
        yield from _sizes(program, function.head, function.parameters)


def _sizes(program: Program, head: Run, uses: Run) -> Iterator[int]:
    if program.text(head.begin) != "template" or program.text(head.begin + 1) != "<":
        return
    closing = program.close_angle(head.begin + 1, head.end)
    if closing is None:
        return
    for run in program.split(Run(head.begin + 2, closing)):
        is_plain = run.end - run.begin == 2 and program.text(run.begin) in _SIZES
        if is_plain and _sizes_a_vector(program, program.text(run.end - 1), uses):
            yield run.begin


def _sizes_a_vector(program: Program, name: str, uses: Run) -> bool:
    """Whether ``vec<…, name>`` occurs."""
    for index in uses:
        if program.text(index) == name and program.text(index + 1) == ">":
            opening = program.open_angle(index + 1)
            if opening is not None and program.text(opening - 1) in _SIZED:
                return True
    return False

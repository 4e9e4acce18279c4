"""Tables 2.1 to 2.6: names, sizes and alignments of the built-in types, and literals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from msl_evaluation import HEADER, Check, evaluate, mismatches
from msl_formats import FLOATS, INTEGERS, SCALARS

pytestmark = pytest.mark.conformance("2.1 Types, sizes and alignments")

# Tables 2.2 to 2.5, spelled out: type → size, alignment.
SCALAR_SIZES = {
    "bool": (1, 1), "char": (1, 1), "uchar": (1, 1), "short": (2, 2), "ushort": (2, 2),
    "int": (4, 4), "uint": (4, 4), "long": (8, 8), "ulong": (8, 8), "half": (2, 2),
    "bfloat": (2, 2), "float": (4, 4), "size_t": (8, 8), "ptrdiff_t": (8, 8),
    "int8_t": (1, 1), "uint8_t": (1, 1), "int16_t": (2, 2), "uint16_t": (2, 2),
    "int32_t": (4, 4), "uint32_t": (4, 4), "int64_t": (8, 8), "uint64_t": (8, 8),
    "unsigned char": (1, 1), "unsigned short": (2, 2), "unsigned int": (4, 4), "unsigned": (4, 4),
    "unsigned long": (8, 8),
}  # fmt: skip
VECTOR_SIZES = {
    f"{scalar}{n}": (size, size)
    for scalars, sizes in {
        ("bool", "char", "uchar"): (2, 4, 4),
        ("short", "ushort", "half", "bfloat"): (4, 8, 8),
        ("int", "uint", "float"): (8, 16, 16),
        ("long", "ulong"): (16, 32, 32),
    }.items()
    for scalar in scalars
    for n, size in zip((2, 3, 4), sizes, strict=True)
}
PACKED_SIZES = {
    f"packed_{scalar}{n}": (n * size, size)
    for scalars, size in {
        ("char", "uchar"): 1,
        ("short", "ushort", "half", "bfloat"): 2,
        ("int", "uint", "float"): 4,
        ("long", "ulong"): 8,
    }.items()
    for scalar in scalars
    for n in (2, 3, 4)
}
MATRIX_SIZES = {
    "half2x2": (8, 4), "half2x3": (16, 8), "half2x4": (16, 8), "half3x2": (12, 4),
    "half3x3": (24, 8), "half3x4": (24, 8), "half4x2": (16, 4), "half4x3": (32, 8),
    "half4x4": (32, 8), "float2x2": (16, 8), "float2x3": (32, 16), "float2x4": (32, 16),
    "float3x2": (24, 8), "float3x3": (48, 16), "float3x4": (48, 16), "float4x2": (32, 8),
    "float4x3": (64, 16), "float4x4": (64, 16),
}  # fmt: skip
ATOMIC_SIZES = {
    "atomic_int": (4, 4), "atomic_uint": (4, 4), "atomic_bool": (4, 4), "atomic_float": (4, 4),
    "atomic_ulong": (8, 8),
}  # fmt: skip
# A structure's layout follows from its members'.
STRUCTS = {
    "char a; float3 b; half c; packed_float3 d; bool e;": (64, 16),
    "float2 a[2]; char3 b;": (24, 8),
    "packed_half3 a; char b; packed_int2 c;": (16, 4),
    "alignas(16) float a; float b;": (16, 16),
    "array<float3, 2> a; array<half, 3> b;": (48, 16),
    "enum Small : uchar { one } a; ulong b;": (16, 8),
    "union { float a; half4 b; }; char c;": (16, 8),
}
SIZES = {**SCALAR_SIZES, **VECTOR_SIZES, **PACKED_SIZES, **MATRIX_SIZES, **ATOMIC_SIZES}


@pytest.fixture(scope="module")
def measured(compile_shader) -> dict[str, tuple[int, int]]:
    structs = "".join(f"struct S{i} {{ {members} }};\n" for i, members in enumerate(STRUCTS))
    names = [*SIZES, *(f"S{i}" for i in range(len(STRUCTS)))]
    rows = "".join(f"  {{ sizeof({name}), alignof({name}) }},\n" for name in names)
    library = compile_shader(
        f"{HEADER}{structs}constant uint sizes[][2] = {{\n{rows}}};\n"
        "kernel void measure(device uint* out, uint i [[thread_position_in_grid]]) {\n"
        "  out[2 * i] = sizes[i][0];\n  out[2 * i + 1] = sizes[i][1];\n}\n"
    )
    out = torch.zeros(len(names), 2, dtype=torch.int)
    library.measure(out, threads=len(names))
    return dict(zip([*SIZES, *STRUCTS], map(tuple, out.tolist()), strict=True))


@pytest.mark.parametrize("type", [*SIZES, *STRUCTS])
def test_size_and_alignment(measured, count, type: str) -> None:
    assert measured[type] == {**SIZES, **STRUCTS}[type]
    count(2)


def same_types() -> list[tuple[str, str]]:
    pairs = [
        ("int8_t", "char"), ("uint8_t", "uchar"), ("int16_t", "short"), ("uint16_t", "ushort"),
        ("int32_t", "int"), ("uint32_t", "uint"), ("int64_t", "long"), ("uint64_t", "ulong"),
        ("size_t", "ulong"), ("ptrdiff_t", "long"), ("unsigned", "uint"),
        ("decltype(sizeof(int))", "size_t"), ("decltype((device int*)0 - (device int*)0)", "long"),
        ("simdgroup_float8x8", "simdgroup_matrix<float, 8, 8>"),
        ("simdgroup_half8x8", "simdgroup_matrix<half, 8, 8>"),
        ("simdgroup_bfloat8x8", "simdgroup_matrix<bfloat, 8, 8>"),
        ("atomic_int", "atomic<int>"), ("atomic_uint", "atomic<uint>"),
        ("atomic_bool", "atomic<bool>"), ("atomic_float", "atomic<float>"),
        ("atomic_ulong", "atomic<ulong>"),
    ]  # fmt: skip
    for scalar in SCALARS:
        pairs += [(f"{scalar}{n}", f"vec<{scalar}, {n}>") for n in (2, 3, 4)]
    for scalar in [*INTEGERS, *FLOATS]:
        pairs += [(f"packed_{scalar}{n}", f"packed_vec<{scalar}, {n}>") for n in (2, 3, 4)]
    return pairs + [
        (f"{scalar}{c}x{r}", f"matrix<{scalar}, {c}, {r}>")
        for scalar in ("half", "float")
        for c in (2, 3, 4)
        for r in (2, 3, 4)
    ]


def test_names_of_the_same_type(compile_shader, count) -> None:
    pairs = same_types()
    rows = ", ".join(f"is_same_v<{a}, {b}>" for a, b in pairs)
    library = compile_shader(
        f"{HEADER}constant bool rows[] = {{ {rows} }};\n"
        "kernel void f(device uchar* out, uint i [[thread_position_in_grid]]) { out[i] = rows[i]; }"
    )
    out = torch.zeros(len(pairs), dtype=torch.uint8)
    library.f(out, threads=len(pairs))
    assert [pair for pair, same in zip(pairs, out.tolist(), strict=True) if not same] == []
    count(len(pairs))


LITERALS = [
    Check("0.5f", "float", 0.5), Check("0.5F", "float", 0.5), Check("0x1.8p-3f", "float", 0.1875),
    Check("1e-3f", "float", np.float32(1e-3)), Check(".25", "float", 0.25),
    Check("0.5h", "half", 0.5), Check("0.5H", "half", 0.5), Check("1e-3h", "half", 1e-3),
    Check("65504.0h", "half", 65504), Check("1.h", "half", 1), Check("0.1h", "half", 0.1),
    Check("0.5bf", "bfloat", 0.5), Check("0.5BF", "bfloat", 0.5), Check("1e3bf", "bfloat", 1e3),
    Check("3.14159bf", "bfloat", 3.14159),
    Check("1", "int", 1), Check("1u", "uint", 1), Check("1U", "uint", 1), Check("1l", "long", 1),
    Check("1L", "long", 1), Check("1ul", "ulong", 1), Check("0xFFFFFFFF", "uint", 2**32 - 1),
    Check("2147483648", "long", 2**31), Check("0b101", "int", 5), Check("017", "int", 15),
    Check("1'000", "int", 1000), Check("'a'", "char", 97), Check("true", "bool", 1),
    Check("int(true) + int(false)", "int", 1), Check("true + true", "int", 2),
]  # fmt: skip


@pytest.fixture(scope="module")
def literals(compile_shader) -> list[np.ndarray]:
    return evaluate(compile_shader, LITERALS)


@pytest.mark.parametrize("index", range(len(LITERALS)), ids=[c.text for c in LITERALS])
def test_literal(literals, count, index: int) -> None:
    assert mismatches([LITERALS[index]], [literals[index]]) == []
    count(1)

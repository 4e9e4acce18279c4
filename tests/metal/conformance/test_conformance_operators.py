"""Operators on scalars, vectors and matrices: the types and the values of their results."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from msl_evaluation import Check, evaluate, mismatches, size
from msl_formats import FLOATS, INTEGERS, SCALARS

pytestmark = pytest.mark.conformance("3.1 Operators")

RANK = ["char", "uchar", "short", "ushort", "int", "uint", "long", "ulong"]


def usual_arithmetic(a: str, b: str) -> str | None:
    """The type of a + b; None where there is no such operator."""
    if {a, b} == {"half", "bfloat"}:
        return None
    for floating in ("float", "half", "bfloat"):
        if floating in (a, b):
            return floating
    if "bool" in (a, b):
        a, b = ("char" if t == "bool" else t for t in (a, b))
    return RANK[max(RANK.index("int"), RANK.index(a), RANK.index(b))]


SCALAR_PAIRS = [
    Check(f"{a}(1) + {b}(1)", type, 2)
    for a, b in itertools.combinations_with_replacement(SCALARS, 2)
    if (type := usual_arithmetic(a, b))
]
VECTOR_PAIRS = [
    check
    for a in [*INTEGERS, *FLOATS]
    for check in [
        Check(f"{a}3(9) * {a}3(1, 2, 3)", f"{a}3", [9, 18, 27]),
        Check(f"{a}2(9) + 1", f"{a}2", [10, 10]),
        Check(f"2 * {a}4(1, 2, 3, 4)", f"{a}4", [2, 4, 6, 8]),
        Check(f"{a}2(7, 8) / {a}(2)", f"{a}2", [3, 4] if a in INTEGERS else [3.5, 4]),
        Check(f"{a}2(7, 8) - packed_{a}2(2)", f"{a}2", [5, 6]),
        Check(f"{a}2(7, 8) < {a}2(8, 7)", "bool2", [1, 0]),
        Check(f"{a}2(7, 8) == {a}(8)", "bool2", [0, 1]),
        Check(f"-{a}2({a}(1), {a}(2))", f"{a}2", [-1, -2]),
    ]
    if not (check.text.startswith("-") and a.startswith("u"))
]
INTEGER_OPERATORS = [
    Check("-7 / 2", "int", -3), Check("7 / -2", "int", -3), Check("7 % 3", "int", 1),
    Check("int3(-7, 7, 9) / 2", "int3", [-3, 3, 4]), Check("uint2(7, 9) % 4", "uint2", [3, 1]),
    Check("5u - 6u", "uint", 2**32 - 1), Check("uchar2(250) + uchar2(10)", "uchar2", [4, 4]),
    Check("ushort2(0) - ushort(1)", "ushort2", [65535] * 2),
    Check("ulong2(~0ul) * 2", "ulong2", [2**64 - 2] * 2),
    Check("uint4(12, 10, 6, 1) & 6u", "uint4", [4, 2, 6, 0]),
    Check("char2(12, 10) | char2(3)", "char2", [15, 11]),
    Check("int2(12, 10) ^ 6", "int2", [10, 12]),
    Check("~short2(0, 1)", "short2", [-1, -2]), Check("~uchar2(1)", "uchar2", [254, 254]),
    Check("int2(3, -8) >> 1", "int2", [1, -4]), Check("uint2(8, ~0u) >> 28u", "uint2", [0, 15]),
    Check("1 << 4", "int", 16), Check("long(1) << 40", "long", 2**40), Check("-16 >> 2", "int", -4),
    Check("char2(-128, 64) >> 3", "char2", [-16, 8]),
]  # fmt: skip
# "The log2(N) least significant bits in E2": a count of N or more wraps.
WRAPPING_SHIFTS = [
    Check("uchar4(3) << uchar4(8, 9, 15, 255)", "uchar4", [3, 6, 128, 128]),
    Check("char4(-128) >> char4(8, 9, 10, 15)", "char4", [-128, -64, -32, -1]),
    Check("short2(3) << 17", "short2", [6, 6]), Check("ushort2(3) << 16", "ushort2", [3, 3]),
    Check("int2(3) << int2(33, 32)", "int2", [6, 3]), Check("uint2(256) >> 36u", "uint2", [16, 16]),
    Check("long2(3) << long2(65, 64)", "long2", [6, 3]),
    Check("ulong2(256) >> ulong2(68)", "ulong2", [16, 16]),
]  # fmt: skip
COMPARISONS = [
    Check(f"{left} {op} {right}", "bool", value)
    for op, values in {
        "<": (1, 0, 0, 0), "<=": (1, 1, 0, 0), ">": (0, 0, 0, 0), ">=": (0, 1, 0, 0),
        "==": (0, 1, 0, 0), "!=": (1, 0, 1, 1),
    }.items()
    for (left, right), value in zip(
        [("1.0f", "2.0f"), ("0.0f", "-0.0f"), ("NAN", "1.0f"), ("half(NAN)", "half(NAN)")],
        values,
        strict=True,
    )
]  # fmt: skip
VECTOR_COMPARISONS = [
    Check("float3(1, NAN, 2) <= float3(1, 1, NAN)", "bool3", [1, 0, 0]),
    Check("float2(NAN, 1) != float2(NAN, 1)", "bool2", [1, 0]),
    Check("half2(NAN, 1) == half2(NAN, 1)", "bool2", [0, 1]),
    Check("bool2(true, false) && bool2(true)", "bool2", [1, 0]),
    Check("bool2(true, false) || bool2(false)", "bool2", [1, 0]),
    Check("!bool3(true, false, true)", "bool3", [0, 1, 0]),
    Check("not(bool2(true, false))", "bool2", [0, 1]),
    Check("char2(-1) > char2(1)", "bool2", [0, 0]),
    Check("uchar2(255) > uchar2(1)", "bool2", [1, 1]),
    Check("int2(5) != 5", "bool2", [0, 0]),
]  # fmt: skip
STATEMENTS = """
  int n = int(data[5]);
  uint4 u(1, 2, 3, 4);
  u += 1; u *= uint4(2); u -= u.yxwz; u ^= 0xFFu; u <<= 1; u |= 1; u %= 100u; u /= 3; u >>= 1;
  float4 f(1, 2, 3, 4);
  f += 0.5f; f *= float4(2); f /= f.wzyx;
  int4 i(1);
  const int4 before = i++;
  const int4 middle = ++i;
  const int4 after = i--;
  half h = 2;
  h *= 3; h += 0.5f; h -= 1;
  bfloat b = 2;
  b *= 3; b += bfloat(0.5f);
  short s = 32767;
  s += 1;
  packed_half3 p(1, 2, 3);
  p *= half(2); p.x += 1;
  bool flag = true;
  flag &= n > 4;
"""
ASSIGNED = [
    Check("u", "uint4", [14, 1, 14, 1]),
    Check("f", "float4", [3 / 9, 5 / 7, 7 / 5, 9 / 3]),
    Check("before", "int4", [1] * 4), Check("middle", "int4", [3] * 4),
    Check("after", "int4", [3] * 4), Check("i", "int4", [2] * 4), Check("h", "half", 5.5),
    Check("b", "bfloat", 6.5), Check("s", "short", -32768),
    Check("p", "packed_half3", [3, 4, 6]), Check("flag", "bool", 1),
    Check("n > 4 ? 1 : 2.5f", "float", 1), Check("n > 5 ? half(1) : half(2)", "half", 2),
    Check("n > 5 ? half(1) : 2", "half", 2), Check("float(n > 4 ? half(1) : 2.5f)", "float", 1),
    Check("n > 4 ? bfloat(1) : 2.5f", "float", 1),
    Check("half(n > 5 ? 1 : half(2))", "half", 2), Check("n > 5 ? bfloat(1) : 3", "bfloat", 3),
    Check("bfloat(3) * (n > 5 ? 1 : bfloat(2))", "bfloat", 6),
    Check("exp2(n > 5 ? 1 : bfloat(2))", "float", 4),
    Check("n > 4 ? float2(1, 2) : 3", "float2", [1, 2]),
    Check("n > 5 ? float2(1, 2) : 3.0f", "float2", [3, 3]),
    Check("n > 5 ? 1.0f : float2(3, 4)", "float2", [3, 4]),
    Check("n > 4 ? uchar(1) : uchar(2)", "uchar", 1), Check("n > 4 ? 1 : 2u", "uint", 1),
    Check("(n, 7)", "int", 7), Check("n == 5 && n < 6 || n", "bool", 1),
]  # fmt: skip
FLOAT_OPERATORS = [
    Check("data[1] / data[0]", "float", np.inf), Check("-data[1] / data[0]", "float", -np.inf),
    Check("data[0] / data[0]", "float", np.nan), Check("data[1] / -data[0]", "float", -np.inf),
    Check("data[1] / data[3]", "float", 1 / 3), Check("-data[0]", "float", -0.0),
    Check("half(data[1]) / half(data[3])", "half", 1 / 3),
    Check("bfloat(data[1]) / bfloat(data[3])", "bfloat", 1 / 3),
    Check("half(data[250]) * half(data[250]) * half(4)", "half", np.inf),
    Check("INFINITY - INFINITY", "float", np.nan), Check("INFINITY * data[0]", "float", np.nan),
    Check("data[16] * 0x1p-140f", "float", 2.0**-136),
    Check("half(data[1]) * 0x1p-24h", "half", 2.0**-24),
    Check("+half(data[3])", "half", 3), Check("-half2(1, 0)", "half2", [-1, -0.0]),
]  # fmt: skip
TABLES = {
    "usual arithmetic conversions": SCALAR_PAIRS,
    "vectors": VECTOR_PAIRS,
    "integers": INTEGER_OPERATORS,
    "wrapping shifts": WRAPPING_SHIFTS,
    "comparisons": COMPARISONS,
    "vector comparisons": VECTOR_COMPARISONS,
    "assignments and conditionals": ASSIGNED,
    "floating-point": FLOAT_OPERATORS,
}


# ---- matrices; a numpy array of one has its columns as rows ----


def matrix(shape: tuple[int, int], start: int) -> np.ndarray:
    return np.arange(start, start + shape[0] * shape[1]).reshape(shape)


def text(scalar: str, m: np.ndarray) -> str:
    name = f"{scalar}{'x'.join(map(str, m.shape))}"
    return f"{name}({', '.join(map(str, m.reshape(-1).tolist()))})"


def matrix_operators(scalar: str) -> list[Check]:
    checks = []
    for columns, rows in itertools.product((2, 3, 4), repeat=2):
        type = f"{scalar}{columns}x{rows}"
        a, b = matrix((columns, rows), 1), matrix((columns, rows), -3)
        right, left = np.arange(1, columns + 1), np.arange(2, rows + 2)
        checks += [
            Check(f"{text(scalar, a)} + {text(scalar, b)}", type, a + b),
            Check(f"{text(scalar, a)} - {text(scalar, b)}", type, a - b),
            Check(f"-{text(scalar, a)}", type, -a),
            Check(f"{text(scalar, a)} * {scalar}(3)", type, a * 3),
            Check(f"{scalar}(3) * {text(scalar, a)}", type, a * 3),
            Check(f"{text(scalar, a)} * {text(scalar, right)}", f"{scalar}{rows}", right @ a),
            Check(f"{text(scalar, left)} * {text(scalar, a)}", f"{scalar}{columns}", a @ left),
        ]
        for width in (2, 3, 4):
            other = matrix((width, columns), -2)
            type = f"{scalar}{width}x{rows}"
            checks.append(Check(f"{text(scalar, a)} * {text(scalar, other)}", type, other @ a))
    return checks


for scalar in ("float", "half"):
    TABLES[f"matrices of {scalar}"] = matrix_operators(scalar)


@pytest.fixture(scope="module")
def values(compile_shader) -> dict[str, list[np.ndarray]]:
    checks = [check for table in TABLES.values() for check in table]
    rest = iter(evaluate(compile_shader, checks, STATEMENTS))
    return {name: list(itertools.islice(rest, len(table))) for name, table in TABLES.items()}


@pytest.mark.parametrize("table", TABLES)
def test_operators(values, count, table: str) -> None:
    assert mismatches(TABLES[table], values[table]) == []
    count(size(TABLES[table]))

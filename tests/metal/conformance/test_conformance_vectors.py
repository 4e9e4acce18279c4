"""Vectors, packed vectors and matrices: constructors, components, swizzles, metal::array."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from msl_evaluation import HEADER, Check, evaluate, mismatches, size
from msl_formats import FLOATS, INTEGERS

pytestmark = pytest.mark.conformance("2.2 Vectors, matrices and arrays")

ELEMENTS = [*INTEGERS, *FLOATS]


def compositions(n: int) -> list[tuple[int, ...]]:
    """The ways to write n as an ordered sum, but for n itself."""
    if n == 0:
        return [()]
    return [
        (first, *rest)
        for first in range(1, n + 1)
        for rest in compositions(n - first)
        if (first, *rest) != (n,)
    ]


def constructors(type: str) -> list[Check]:
    """A vector from one scalar, from parts of every shape, from a vector of another type."""
    checks = []
    for n in (2, 3, 4):
        vector, packed = f"{type}{n}", f"packed_{type}{n}"
        checks.append(Check(f"{vector}({type}(7))", vector, [7] * n))
        for parts in compositions(n):
            first = itertools.accumulate((0, *parts[:-1]))
            arguments = [
                f"{type}({at + 1})"
                if size == 1
                else f"{type}{size}({', '.join(f'{type}({at + 1 + i})' for i in range(size))})"
                for at, size in zip(first, parts, strict=True)
            ]
            value = list(range(1, n + 1))
            checks.append(Check(f"{vector}({', '.join(arguments)})", vector, value))
            checks.append(Check(f"{packed}({', '.join(arguments)})", packed, value))
        other = "float" if type in INTEGERS else "int"
        some = ", ".join("3 5 9 100".split()[:n])
        value = [3, 5, 9, 100][:n]
        checks += [
            Check(f"{vector}({vector}({some}))", vector, value),
            Check(f"{vector}({other}{n}({some}))", vector, value),
            Check(f"{vector}({packed}({some}))", vector, value),
            Check(f"{packed}({vector}({some}))", packed, value),
            Check(f"{packed}({type}(7))", packed, [7] * n),
            Check(f"vec<{type}, {n}>{{{some}}}", vector, value),
        ]
    return checks


@pytest.fixture(scope="module")
def constructed(compile_shader) -> dict[str, list[np.ndarray]]:
    tables = {type: constructors(type) for type in ELEMENTS}
    values = evaluate(compile_shader, [check for table in tables.values() for check in table])
    rest = iter(values)
    return {type: list(itertools.islice(rest, len(table))) for type, table in tables.items()}


@pytest.mark.parametrize("type", ELEMENTS)
def test_constructors(constructed, count, type: str) -> None:
    assert mismatches(constructors(type), constructed[type]) == []
    count(size(constructors(type)))


# ---- swizzles: every one that reads, every one that can be assigned to ----


def swizzles(letters: str, repeated: bool) -> list[str]:
    choose = itertools.product if repeated else itertools.permutations
    return [
        "".join(name)
        for n in (2, 3, 4)
        if n <= len(letters)
        for name in (choose(letters, repeat=n) if repeated else choose(letters, n))
    ]


@pytest.mark.parametrize("letters", ["xy", "xyz", "xyzw", "rg", "rgb", "rgba"])
@pytest.mark.parametrize("packed", ["", "packed_"], ids=["aligned", "packed"])
def test_swizzles_read(compile_shader, count, letters: str, packed: str) -> None:
    names = swizzles(letters, repeated=True)
    if len(letters) == 4:  # 336 names; each of these four tests takes others
        names = names[["xyzw", "rgba"].index(letters) + 2 * bool(packed) :: 6]
    n = len(letters)
    values = ", ".join(str(10 + i) for i in range(n))
    rows = "".join(
        f"  {{ uchar4 row(0); row.{'xyzw'[: len(name)]} = v.{name}; out[{i}] = row; }}\n"
        for i, name in enumerate(names)
    )
    library = compile_shader(
        f"{HEADER}kernel void f(device uchar4* out) {{ {packed}uchar{n} v({values});\n{rows}}}"
    )
    out = torch.zeros(len(names), 4, dtype=torch.uint8)
    library.f(out, threads=1)
    for name, row in zip(names, out.tolist(), strict=True):
        expected = [10 + letters.index(letter) for letter in name]
        assert row[: len(name)] == expected, name
    count(sum(map(len, names)))


@pytest.mark.parametrize("letters", ["xyzw", "rgba"])
def test_swizzles_assign(compile_shader, count, letters: str) -> None:
    names = swizzles(letters, repeated=False)
    rows = "".join(
        f"  v = int4(-1); v.{name} = int{len(name)}({', '.join(map(str, range(len(name))))});"
        f" out[{2 * i}] = v;\n"
        f"  v = start; v.{name} = start.{name[::-1]}; v.{name} += 10; out[{2 * i + 1}] = v;\n"
        for i, name in enumerate(names)
    )
    library = compile_shader(
        f"{HEADER}kernel void f(device int4* out) {{ const int4 start(0, 1, 2, 3); int4 v;\n"
        f"{rows}}}"
    )
    out = torch.zeros(len(names), 2, 4, dtype=torch.int)
    library.f(out, threads=1)
    for name, (assigned, swapped) in zip(names, out.tolist(), strict=True):
        places = [letters.index(letter) for letter in name]
        expected = [places.index(i) if i in places else -1 for i in range(4)]
        assert assigned == expected, name
        expected = list(range(4))
        for place, source in zip(places, reversed(places), strict=True):
            expected[place] = source + 10
        assert swapped == expected, name
    count(8 * len(names))


# ---- components, packed vectors, matrices, arrays ----

ACCESS = """
  float4 v(1, 2, 3, 4);
  packed_float3 p(5, 6, 7);
  float2x3 m(float3(1, 2, 3), float3(4, 5, 6));
  half3x3 h(2);
  const array<int, 4> a = {1, 2, 3, 4};
  array<float2, 2> pairs = {float2(1, 2), float2(3, 4)};
  thread float* q = &v.z;
  v[1] = 20;
  *q += 100;
  const int runtime = int(data[3]);
  v[runtime] = 40;
  p[2] = 70;
  p.y += 1;
  p.xz = p.zx;
  m[1] = float3(data[7]);
  m[0][2] = 30;
  m[runtime - 3].y = 9;
  pairs[1].x = -3;
  bool4 b(true, false, true, true);
  uchar4 u(250, 251, 252, 253);
  u.x += 10;
  int2 i(5, -6);
  const int2 before = i++;
  const int2 after = --i;
  const uniform<int> same = 3;
  union { float4 f; uint4 u; } bits;
  bits.f = float4(1);
  bits.u.xy = uint2(0x40000000, 0);
  const auto pair = v.zw;
  float4 chained = v;
  chained.xyz.zx = float2(-1, -2);
  const auto twice = [](auto x) { return x + x; };
"""
ACCESSES = [
    Check("v", "float4", [1, 20, 103, 40]),
    Check("v.a", "float", 40),
    Check("v[0] + v.g + v.b", "float", 124),
    Check("p", "packed_float3", [70, 7, 5]),
    Check("p + float3(1)", "float3", [71, 8, 6]),
    Check("float3(p) * 2", "float3", [140, 14, 10]),
    Check("p == packed_float3(70, 7, 5)", "bool3", [1, 1, 1]),
    Check("m", "float2x3", [[1, 9, 30], [7, 7, 7]]),
    Check("m[1][0]", "float", 7),
    Check("m[0]", "float3", [1, 9, 30]),
    Check("h", "half3x3", [[2, 0, 0], [0, 2, 0], [0, 0, 2]]),
    Check("a[2] + a.back()", "int", 7),
    Check("a.size()", "ulong", 4),
    Check("a.front() * 10 + a[runtime]", "int", 14),
    Check("pairs[1]", "float2", [-3, 4]),
    Check("b", "bool4", [1, 0, 1, 1]),
    Check("!b", "bool4", [0, 1, 0, 0]),
    Check("u", "uchar4", [4, 251, 252, 253]),
    Check("before", "int2", [5, -6]),
    Check("after", "int2", [5, -6]),
    Check("i", "int2", [5, -6]),
    Check("same * 2", "int", 6),
    Check("bits.f", "float4", [2, 0, 1, 1]),
    Check("pair.y", "float", 40),
    Check("chained", "float4", [-2, 20, -1, 40]),
    Check("float4(v.wzyx.yz, v.rgb.bgr.rg.x, v.xyz.y)", "float4", [103, 20, 103, 20]),
    Check("twice(v)", "float4", [2, 40, 206, 80]),
    Check("twice(v.xy)", "float2", [2, 40]),
    Check("float4(1, 2, 3, 4)[runtime]", "float", 4),
    Check("float2x2(1, 2, 3, 4)", "float2x2", [[1, 2], [3, 4]]),
    Check("float3x2(1, 2, 3, 4, 5, 6)", "float3x2", [[1, 2], [3, 4], [5, 6]]),
    Check("float3x2(float2(1, 2), float2(3), float2(5, 6))", "float3x2", [[1, 2], [3, 3], [5, 6]]),
    Check("float2x2(half2x2(1, 2, 3, 4))", "float2x2", [[1, 2], [3, 4]]),
    Check("half2x2(float2x2(1, 2, 3, 70000))", "half2x2", [[1, 2], [3, np.inf]]),
    Check("float4x4(1)", "float4x4", np.eye(4)),
    Check("float2x4(3.0f)", "float2x4", [[3, 0, 0, 0], [0, 3, 0, 0]]),
    Check("float4x2(3.0f)", "float4x2", [[3, 0], [0, 3], [0, 0], [0, 0]]),
    Check("matrix<half, 2, 3>(half3(1), half3(2))", "half2x3", [[1] * 3, [2] * 3]),
]


@pytest.fixture(scope="module")
def accessed(compile_shader) -> list[np.ndarray]:
    return evaluate(compile_shader, ACCESSES, ACCESS)


@pytest.mark.parametrize("index", range(len(ACCESSES)), ids=[c.text for c in ACCESSES])
def test_access(accessed, count, index: int) -> None:
    assert mismatches([ACCESSES[index]], [accessed[index]]) == []
    count(size([ACCESSES[index]]))

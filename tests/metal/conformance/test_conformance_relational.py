"""Table 6.3: relational functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msl_evaluation import HEADER, Check, evaluate, mismatches, results, size, tensor
from msl_formats import FLOATS, INTEGERS, FloatFormat

pytestmark = pytest.mark.conformance("6.4 Relational functions")

TESTS = {
    "isfinite": lambda x, format: np.isfinite(x),
    "isinf": lambda x, format: np.isinf(x),
    "isnan": lambda x, format: np.isnan(x),
    "isnormal": lambda x, format: np.isfinite(x) & (np.abs(x) >= format.smallest_normal),
    "signbit": lambda x, format: np.signbit(x),
}


def special_values(format: FloatFormat) -> np.ndarray:
    values = [0.0, 1, 1.5, format.largest, format.smallest, format.smallest_normal, math.inf]
    values.append(format.smallest_normal - format.smallest)
    return np.array([*values, *(-x for x in values), math.nan, 2.0, -3.0, 100.0])


@pytest.fixture(scope="module")
def kernels(compile_shader):
    source = [HEADER]
    for type in FLOATS:
        rows = "".join(
            f"  out[{k} * n + i] = bool4({name}(in[i]));\n"
            f"  for (uint c = 0; c < 4; ++c) scalars[{k} * n + i][c] = {name}(in[i][c]);\n"
            for k, name in enumerate(TESTS)
        )
        source.append(
            f"kernel void test_{type}(device bool4* out, device bool4* scalars,\n"
            f"    constant {type}4* in, constant uint& n, uint i [[thread_position_in_grid]]) {{\n"
            f"{rows}}}\n"
            f"kernel void pair_{type}(device bool4* out, constant {type}4* x,\n"
            f"    constant {type}4* y, uint i [[thread_position_in_grid]]) {{\n"
            f"  out[3 * i] = isordered(x[i], y[i]); out[3 * i + 1] = isunordered(x[i], y[i]);\n"
            f"  out[3 * i + 2] = bool4(isunordered(x[i].x, y[i].x), isordered(x[i].w, y[i].w),\n"
            "    0, 0);\n}\n"
        )
    return compile_shader("".join(source))


@pytest.mark.parametrize("type", FLOATS)
def test_classification(kernels, count, type: str) -> None:
    format = FLOATS[type]
    x = special_values(format)
    out, scalars = results(len(TESTS) * len(x), 1), results(len(TESTS) * len(x), 1)
    n = len(x) // 4
    getattr(kernels, f"test_{type}")(out, scalars, tensor(x, format), n, threads=n)
    expected = [test(x, format).astype(int).tolist() for test in TESTS.values()]
    for got in (out, scalars):
        assert got.reshape(len(TESTS), -1).tolist() == expected
    count(2 * out.numel())


@pytest.mark.parametrize("type", FLOATS)
def test_order(kernels, count, type: str) -> None:
    format = FLOATS[type]
    values = special_values(format)
    x, y = (pair.reshape(-1) for pair in np.meshgrid(values, values))
    out = results(3 * len(x), 1)
    getattr(kernels, f"pair_{type}")(out, tensor(x, format), tensor(y, format), threads=len(x) // 4)
    unordered = (np.isnan(x) | np.isnan(y)).reshape(-1, 4)
    ordered, reverse, single = out.numpy().reshape(-1, 3, 4).transpose(1, 0, 2)
    assert (ordered == ~unordered).all() and (reverse == unordered).all()
    assert (single[:, 0] == unordered[:, 0]).all() and (single[:, 1] == ~unordered[:, 3]).all()
    count(out.numel())


CHECKS = [
    Check("all(bool4(true))", "bool", 1), Check("all(bool4(true, true, false, true))", "bool", 0),
    Check("all(bool2(true))", "bool", 1), Check("all(bool3(false, true, true))", "bool", 0),
    Check("any(bool3(false, true, false))", "bool", 1), Check("any(bool4(false))", "bool", 0),
    Check("any(bool2(false, true))", "bool", 1), Check("all(true)", "bool", 1),
    Check("any(false)", "bool", 0),
    Check("not(bool3(true, false, true))", "bool3", [0, 1, 0]),
    Check("any(float2(1, 2) > 1.5f)", "bool", 1), Check("all(int3(1, 2, 3) > 1)", "bool", 0),
    *(
        check
        for T in [*INTEGERS, *FLOATS]
        for check in [
            Check(f"select({T}(1), {T}(2), true)", T, 2),
            Check(f"select({T}(1), {T}(2), false)", T, 1),
            Check(
                f"select({T}3(1, 2, 3), {T}3(4, 5, 6), bool3(true, false, true))", f"{T}3",
                [4, 2, 6],
            ),
            Check(f"select({T}2(1), {T}2(4, 5), {T}2(1, 2) > {T}(1))", f"{T}2", [1, 5]),
        ]
    ),
    Check("select(bool2(true, false), bool2(false, true), bool2(true))", "bool2", [0, 1]),
    Check("select(0.0f, -0.0f, true)", "float", -0.0),
    Check("select(NAN, 1.0f, false)", "float", math.nan),
]  # fmt: skip


@pytest.fixture(scope="module")
def values(compile_shader) -> list[np.ndarray]:
    return evaluate(compile_shader, CHECKS)


@pytest.mark.parametrize("index", range(len(CHECKS)), ids=[c.text for c in CHECKS])
def test_any_all_select(values, count, index: int) -> None:
    assert mismatches([CHECKS[index]], [values[index]]) == []
    count(size([CHECKS[index]]))

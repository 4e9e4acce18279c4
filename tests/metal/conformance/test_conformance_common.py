"""Table 6.1: common functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msl_evaluation import Check, decoded, elementwise, evaluate, mismatches, results, size, tensor
from msl_formats import FLOAT, FLOATS, FloatFormat

pytestmark = pytest.mark.conformance("6.2 Common functions")

INF, NAN = math.inf, math.nan
CHECKS = [
    check
    for T, F in (("float", FLOAT), ("half", FLOATS["half"]))
    for check in [
        Check(f"clamp({T}(5), {T}(0), {T}(3))", T, 3),
        Check(f"clamp({T}(-1), {T}(0), {T}(3))", T, 0),
        Check(f"clamp({T}(2), {T}(0), {T}(3))", T, 2),
        Check(f"clamp({T}(NAN), {T}(1), {T}(3))", T, 1),
        Check(f"clamp({T}(INFINITY), {T}(1), {T}(3))", T, 3),
        Check(f"clamp({T}4(-1, 0.5f, 2, 1), {T}(0), {T}(1))", f"{T}4", [0, 0.5, 1, 1]),
        Check(f"clamp({T}2(-1, 5), {T}2(0, 1), {T}2(3, 4))", f"{T}2", [0, 4]),
        Check(f"mix({T}(1), {T}(3), {T}(0.25f))", T, 1.5),
        Check(f"mix({T}(1), {T}(3), {T}(0))", T, 1),
        Check(f"mix({T}2(1, 2), {T}2(3, 6), {T}(0.5f))", f"{T}2", [2, 4]),
        Check(f"mix({T}2(1, 2), {T}2(3, 6), {T}2(1, 0.5f))", f"{T}2", [3, 4]),
        Check(f"saturate({T}(-0.5f))", T, 0.0), Check(f"saturate({T}(0.25f))", T, 0.25),
        Check(f"saturate({T}(1.5f))", T, 1), Check(f"saturate({T}(NAN))", T, 0),
        Check(f"saturate({T}(INFINITY))", T, 1),
        Check(f"saturate({T}3(-1, 0.5f, 2))", f"{T}3", [0, 0.5, 1]),
        Check(f"sign({T}(3))", T, 1), Check(f"sign({T}(-3))", T, -1),
        Check(f"sign({T}(0))", T, 0.0),
        Check(f"sign({T}(-0.0f))", T, -0.0), Check(f"sign({T}(NAN))", T, 0),
        Check(f"sign({T}(-INFINITY))", T, -1), Check(f"sign({T}2(-2, 0))", f"{T}2", [-1, 0]),
        Check(f"smoothstep({T}(0), {T}(2), {T}(1))", T, 0.5),
        Check(f"smoothstep({T}(0), {T}(2), {T}(-1))", T, 0),
        Check(f"smoothstep({T}(0), {T}(2), {T}(3))", T, 1),
        Check(f"smoothstep({T}(0), {T}(4), {T}2(1, 3))", f"{T}2", [0.15625, 0.84375]),
        Check(f"step({T}(1), {T}(1))", T, 1), Check(f"step({T}(2), {T}(1))", T, 0),
        Check(f"step({T}(1), {T}(2))", T, 1),
        Check(f"step({T}3(1), {T}3(0, 1, 2))", f"{T}3", [0, 1, 1]),
        Check(f"step({T}(1), {T}2(0, 1))", f"{T}2", [0, 1]),
    ]
]  # fmt: skip
CHECKS += [
    Check("precise::clamp(NAN, 1.0f, 3.0f)", "float", 1),
    Check("precise::saturate(NAN)", "float", 0),
    Check("fast::clamp(5.0f, 0.0f, 3.0f)", "float", 3), Check("fast::saturate(1.5f)", "float", 1),
    Check("clamp(5, 0, 3)", "int", 3), Check("clamp(uint3(1, 5, 9), 2u, 6u)", "uint3", [2, 5, 6]),
]  # fmt: skip


@pytest.fixture(scope="module")
def values(compile_shader) -> list[np.ndarray]:
    return evaluate(compile_shader, CHECKS)


@pytest.mark.parametrize("index", range(len(CHECKS)), ids=[c.text for c in CHECKS])
def test_common_function(values, count, index: int) -> None:
    assert mismatches([CHECKS[index]], [values[index]]) == []
    count(size([CHECKS[index]]))


@pytest.fixture(scope="module")
def blends(compile_shader):
    table = {}
    for type in ("float", "half"):
        table[f"mix_{type}"] = (type, [type] * 3, "mix(x, y, z)")
        table[f"smoothstep_{type}"] = (type, [type] * 3, "smoothstep(x, x + y, x + y * z)")
    return compile_shader(elementwise(table))


@pytest.mark.parametrize("format", [FLOAT, FLOATS["half"]], ids=lambda format: format.name)
def test_blends(blends, count, format: FloatFormat) -> None:
    generator = np.random.default_rng(8)
    x, y, z = format.round(generator.uniform([[-8], [1], [0]], [[8], [9], [1]], (3, 4096)))
    inputs = [tensor(values, format) for values in (x, y, z)]
    out = results(4096, format.size)
    getattr(blends, f"mix_{format.name}")(out, *inputs, threads=4096)
    blended = x + (y - x) * z
    assert (np.abs(decoded(out, format) - blended) <= 4 * format.ulp(np.maximum(abs(x), y))).all()

    getattr(blends, f"smoothstep_{format.name}")(out, *inputs, threads=4096)
    steps = z * z * (3 - 2 * z)
    assert (np.abs(decoded(out, format) - steps) <= 24 * format.epsilon).all()
    count(2 * 4096)

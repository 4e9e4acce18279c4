"""Tables 6.8 and 6.11: matrix and geometric functions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from msl_evaluation import (
    Check,
    decoded,
    elementwise,
    evaluate,
    mismatches,
    results,
    size,
    tensor,
)
from msl_formats import FLOAT, HALF

pytestmark = pytest.mark.conformance("6.8 Geometric and matrix functions")

COUNT = 512
FORMATS = {"float": FLOAT, "half": HALF}


def dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x * y).sum(-1)


def length(x: np.ndarray) -> np.ndarray:
    return np.sqrt(dot(x, x))


def normalize(x: np.ndarray) -> np.ndarray:
    return x / length(x)[..., None]


def reflect(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    normal = normalize(y)
    return x - 2 * dot(normal, x)[..., None] * normal


def refract(x: np.ndarray, y: np.ndarray, eta: float) -> np.ndarray:
    """Of unit vectors, by Snell's law; zero where all light is reflected."""
    incident, normal = normalize(x), normalize(y)
    cosine = dot(normal, incident)[..., None]
    k = 1 - eta * eta * (1 - cosine * cosine)
    bent = eta * incident - (eta * cosine + np.sqrt(np.maximum(k, 0))) * normal
    return np.where(k < 0, 0, bent)


# Expression, whether it gives a scalar, reference, and the result's scale, for the error.
FUNCTIONS = {
    "dot": ("dot(x, y)", True, dot, lambda x, y: length(x) * length(y)),
    "length": ("length(x)", True, lambda x, y: length(x), lambda x, y: length(x)),
    "length_squared": (
        "length_squared(x)", True, lambda x, y: dot(x, x), lambda x, y: dot(x, x),
    ),
    "distance": (
        "distance(x, y)", True, lambda x, y: length(x - y), lambda x, y: length(x) + length(y),
    ),
    "distance_squared": (
        "distance_squared(x, y)", True, lambda x, y: dot(x - y, x - y),
        lambda x, y: (length(x) + length(y)) ** 2,
    ),
    "normalize": ("normalize(x)", False, lambda x, y: normalize(x), lambda x, y: 1 + 0 * x[..., 0]),
    "reflect": ("reflect(x, y)", False, reflect, lambda x, y: length(x)),
    "refract": (
        "refract(normalize(x), normalize(y), T(0.75f))", False,
        lambda x, y: refract(x, y, 0.75), lambda x, y: 4 + 0 * x[..., 0],
    ),
    "faceforward": (
        "faceforward(x, y, x + y)", False,
        lambda x, y: np.where(dot(x + y, y)[..., None] < 0, x, -x), lambda x, y: length(x),
    ),
}  # fmt: skip
SPACES = {"distance": ("precise", "fast"), "length": ("precise", "fast")}
SPACES["normalize"] = ("precise", "fast")


@pytest.fixture(scope="module")
def kernels(compile_shader):
    table = {}
    for type, n in itertools.product(FORMATS, (2, 3, 4)):
        vector = f"{type}{n}"
        for name, (text, scalar, _, _) in FUNCTIONS.items():
            text = text.replace("T(", f"{type}(")
            operands = [f"packed_{vector}"] * 2
            text = text.replace("x", f"{vector}(x)").replace("y", f"{vector}(y)")
            table[f"{name}_{vector}"] = (type if scalar else f"packed_{vector}", operands, text)
            for space in SPACES.get(name, ()) if type == "float" else ():
                table[f"{name}_{vector}_{space}"] = (
                    type if scalar else f"packed_{vector}", operands, f"{space}::{text}",
                )  # fmt: skip
    return compile_shader(elementwise(table))


VARIANTS = [
    (name, space, type)
    for name in FUNCTIONS
    for type in FORMATS
    for space in ("", *SPACES.get(name, ()))
    if not (space and type == "half")
]


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize(
    ("name", "space", "type"),
    VARIANTS,
    ids=[f"{s + '::' if s else ''}{n}-{t}" for n, s, t in VARIANTS],
)
def test_geometric_function(kernels, count, name: str, space: str, type: str, n: int) -> None:
    _, scalar, reference, scale = FUNCTIONS[name]
    format = FORMATS[type]
    generator = np.random.default_rng(n)
    x, y = format.round(generator.uniform(-4, 4, (2, COUNT, n)))
    if name == "faceforward":  # away from right angles, about which it may take either side
        y = np.where(np.abs(dot(x + y, y))[:, None] < 0.1, x, y)
    out = results(COUNT * (1 if scalar else n), format.size)
    kernel = getattr(kernels, f"{name}_{type}{n}{'_' + space if space else ''}")
    kernel(out, tensor(x, format), tensor(y, format), threads=COUNT)
    exact = reference(x, y)
    error = np.abs(decoded(out, format).reshape(exact.shape) - exact)
    allowed = (64 if space == "fast" else 8) * format.epsilon * scale(x, y)
    assert (error <= (allowed if scalar else allowed[..., None])).all()
    count(exact.size)


# ---- exact cases, and matrix functions on small integers ----


def matrix_text(type: str, m: np.ndarray) -> str:
    shape = "x".join(map(str, m.shape))
    return f"{type}{shape}({', '.join(map(str, m.reshape(-1).tolist()))})"


def matrix_checks() -> list[Check]:
    checks = []
    generator = np.random.default_rng(9)
    for type, columns, rows in itertools.product(FORMATS, (2, 3, 4), (2, 3, 4)):
        m = generator.integers(-4, 5, (columns, rows))
        checks.append(Check(f"transpose({matrix_text(type, m)})", f"{type}{rows}x{columns}", m.T))
        if columns == rows:
            value = round(np.linalg.det(m))
            checks.append(Check(f"determinant({matrix_text(type, m)})", type, value))
    return checks


CHECKS = [
    Check("cross(float3(1, 0, 0), float3(0, 1, 0))", "float3", [0, 0, 1]),
    Check("cross(float3(1, 2, 3), float3(-4, 5, 6))", "float3", [-3, -18, 13]),
    Check("cross(half3(1, 2, 3), half3(-4, 5, 6))", "half3", [-3, -18, 13]),
    Check("precise::cross(float3(0, 0, 1), float3(1, 0, 0))", "float3", [0, 1, 0]),
    Check("dot(float4(1, 2, 3, 4), float4(5, 6, 7, 8))", "float", 70),
    Check("dot(half2(3, 4), half2(3, 4))", "half", 25),
    Check("length(float2(3, 4))", "float", 5), Check("length(half3(2, 3, 6))", "half", 7),
    Check("distance(float2(0, 3), float2(4, 0))", "float", 5),
    Check("normalize(float4(0, 2, 0, 0))", "float4", [0, 1, 0, 0]),
    Check("reflect(float2(1, -1), float2(0, 1))", "float2", [1, 1]),
    Check("refract(float2(0, -1), float2(0, 1), 0.5f)", "float2", [0, -1]),
    Check("refract(float2(1, 0), float2(0, 1), 2.0f)", "float2", [0, 0]),
    Check("faceforward(float2(0, 1), float2(0, -1), float2(0, 1))", "float2", [0, 1]),
    Check("faceforward(float2(0, 1), float2(0, 1), float2(0, 1))", "float2", [-0.0, -1]),
    Check("faceforward(float2(2, 1), float2(0, 1), float2(1, 0))", "float2", [-2, -1]),
    Check("cross(float4(1, 2, 3, 9).xyz, float4(-4, 5, 6, 9).xyz)", "float3", [-3, -18, 13]),
    Check("dot(float4(1, 2, 3, 4).xw, float2(5, 6))", "float", 29),
    Check("length(float4(3, 0, 0, 4).xw)", "float", 5),
    Check("normalize(packed_float3(0, 2, 0))", "float3", [0, 1, 0]),
    Check("reflect(float4(1, -1, 0, 0).xyz, float3(0, 1, 0))", "float3", [1, 1, 0]),
    Check("refract(float4(0, -1, 0, 0).xyz, packed_float3(0, 1, 0), 0.5f)", "float3", [0, -1, 0]),
    Check("refract(half2(0, -1), half2(0, 1), 0.5f)", "half2", [0, -1]),
    Check("faceforward(float3(0, 1, 0), float4(0, -1, 0, 9).xyz, float3(0, 1, 0)).y",
          "float", 1),
    Check("distance(float4(0, 3, 0, 0).xy, float2(4, 0))", "float", 5),
    *matrix_checks(),
]  # fmt: skip


@pytest.fixture(scope="module")
def values(compile_shader) -> list[np.ndarray]:
    return evaluate(compile_shader, CHECKS)


@pytest.mark.parametrize("index", range(len(CHECKS)), ids=[c.text for c in CHECKS])
def test_exact_case(values, count, index: int) -> None:
    assert mismatches([CHECKS[index]], [values[index]]) == []
    count(size([CHECKS[index]]))

"""Table 6.4: math functions at zeros, infinities, NaNs, ties, and where two results come back.

Where the specification is silent, C's annex F says what a function gives.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from msl_evaluation import Check, decoded, elementwise, evaluate, mismatches, results, size, tensor
from msl_formats import FLOATS, HALF, same

pytestmark = pytest.mark.conformance("6.5 Math functions, edge cases")

INF, NAN, PI = math.inf, math.nan, math.pi
Row = tuple[float, ...]  # operands, then the result


def odd(*rows: tuple[float, float]) -> list[Row]:
    """Rows of an odd function, mirrored."""
    return [*rows, *((-x, -y) for x, y in rows)]


def even(*rows: tuple[float, float]) -> list[Row]:
    return [*rows, *((-x, y) for x, y in rows)]


POWERS: list[Row] = [
    (0.0, 3, 0.0), (-0.0, 3, -0.0), (0.0, 2, 0.0), (-0.0, 2, 0.0), (0.0, 0.5, 0.0),
    (0.0, -3, INF), (-0.0, -3, -INF), (-0.0, -2, INF), (0.0, -0.5, INF),
    (-1, INF, 1), (-1, -INF, 1), (1, NAN, 1), (1, INF, 1), (NAN, 0, 1), (INF, 0, 1), (0, 0, 1),
    (-2, 3, -8), (-2, 2, 4), (-2, 0.5, NAN), (-8, 1 / 3, NAN), (0.5, INF, 0), (0.5, -INF, INF),
    (2, INF, INF), (2, -INF, 0), (INF, 2, INF), (INF, -2, 0), (-INF, 3, -INF), (-INF, 2, INF),
    (-INF, -3, -0.0), (-INF, -2, 0), (NAN, 2, NAN), (2, NAN, NAN), (4, 0.5, 2), (2, -1, 0.5),
]  # fmt: skip
EDGES: dict[str, list[Row]] = {
    "acos": [(1, 0.0), (-1, PI), (0, PI / 2), (1.5, NAN), (-1.5, NAN), (INF, NAN)],
    "acosh": [(1, 0.0), (0.5, NAN), (-1, NAN), (INF, INF)],
    "asin": odd((0.0, 0.0), (1, PI / 2), (1.5, NAN)),
    "asinh": odd((0.0, 0.0), (INF, INF)),
    "atan": odd((0.0, 0.0), (INF, PI / 2), (1, PI / 4)),
    "atanh": odd((0.0, 0.0), (1, INF), (2, NAN)),
    "atan2": [
        (0.0, 1, 0.0), (-0.0, 1, -0.0), (0.0, -1, PI), (-0.0, -1, -PI), (0.0, 0.0, 0.0),
        (-0.0, 0.0, -0.0), (0.0, -0.0, PI), (-0.0, -0.0, -PI), (1, 0, PI / 2), (-1, 0, -PI / 2),
        (1, -0.0, PI / 2), (1, 1, PI / 4), (1, -1, 3 * PI / 4), (-1, -1, -3 * PI / 4),
        (-1, 1, -PI / 4), (INF, 1, PI / 2), (-INF, -1, -PI / 2), (1, INF, 0.0), (-1, INF, -0.0),
        (1, -INF, PI), (-1, -INF, -PI), (INF, INF, PI / 4), (INF, -INF, 3 * PI / 4),
        (-INF, -INF, -3 * PI / 4), (NAN, 1, NAN), (1, NAN, NAN),
    ],
    "ceil": [(0.0, 0.0), (-0.0, -0.0), (-0.5, -0.0), (0.5, 1), (-1.5, -1), (2, 2), (INF, INF)],
    "copysign": [(1, -0.0, -1), (-1, 0.0, 1), (NAN, 1, NAN), (INF, -3, -INF), (0.0, -3, -0.0)],
    "cos": even((0.0, 1), (INF, NAN)),
    "cosh": even((0.0, 1), (INF, INF)),
    "cospi": even((0.0, 1), (0.5, 0.0), (1, -1), (1.5, 0.0), (2, 1), (100, 1), (INF, NAN)),
    "divide": [(1, 0.0, INF), (1, -0.0, -INF), (0, 0, NAN), (INF, INF, NAN), (1, INF, 0.0)],
    "exp": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0.0), (200, INF), (-200, 0.0)],
    "exp2": [(0.0, 1), (3, 8), (-3, 0.125), (INF, INF), (-INF, 0.0), (200, INF), (-200, 0.0)],
    "exp10": [(0.0, 1), (INF, INF), (-INF, 0.0), (60, INF), (-60, 0.0)],
    "fabs": even((0.0, 0.0), (INF, INF), (2.5, 2.5)),
    "fdim": [
        (3, 1, 2), (1, 3, 0.0), (2, 2, 0.0), (INF, 1, INF), (1, INF, 0.0), (-INF, 1, 0.0),
        (INF, INF, 0.0), (NAN, 1, NAN), (1, NAN, NAN),
    ],
    "floor": [(0.0, 0.0), (-0.0, -0.0), (0.5, 0.0), (-0.5, -1), (1.5, 1), (-INF, -INF)],
    "fma": [
        (2, 3, 4, 10), (INF, 0, 1, NAN), (0, INF, NAN, NAN), (INF, 1, -INF, NAN), (1, 1, -1, 0.0),
        (-0.0, 0.0, -0.0, -0.0), (-0.0, 0.0, 0.0, 0.0), (INF, 2, 1, INF), (2, 3, -INF, -INF),
    ],
    "fmax": [
        (1, 2, 2), (NAN, 1, 1), (1, NAN, 1), (NAN, NAN, NAN), (-INF, NAN, -INF), (INF, 1, INF),
    ],
    "fmin": [
        (1, 2, 1), (NAN, 1, 1), (1, NAN, 1), (NAN, NAN, NAN), (INF, NAN, INF), (-INF, 1, -INF),
    ],
    "max": [(1, 2, 2), (NAN, 1, 1), (1, NAN, 1), (NAN, NAN, NAN), (-INF, INF, INF)],
    "min": [(1, 2, 1), (NAN, 1, 1), (1, NAN, 1), (NAN, NAN, NAN), (-INF, INF, -INF)],
    "fmax3": [(1, NAN, 3, 3), (NAN, NAN, 2, 2), (NAN, NAN, NAN, NAN), (5, 1, 3, 5)],
    "fmin3": [(1, NAN, 3, 1), (NAN, NAN, 2, 2), (NAN, NAN, NAN, NAN), (5, 1, 3, 1)],
    "max3": [(1, NAN, 3, 3), (5, 1, 3, 5)],
    "min3": [(1, NAN, 3, 1), (5, 1, 3, 1)],
    "fmedian3": [(5, 1, 3, 3), (1, 1, 2, 1), (NAN, NAN, 2, 2), (NAN, NAN, NAN, NAN)],
    "median3": [(5, 1, 3, 3), (2, NAN, NAN, 2), (NAN, 2, NAN, 2)],
    "fmod": [
        (5.5, 2, 1.5), (-5.5, 2, -1.5), (5.5, -2, 1.5), (0.0, 3, 0.0), (-0.0, 3, -0.0),
        (-4, 2, -0.0), (3, INF, 3), (-3, INF, -3), (INF, 2, NAN), (1, 0, NAN), (NAN, 1, NAN),
    ],
    "fract": [(0.0, 0.0), (2, 0.0), (2.25, 0.25), (-0.25, 0.75), (-2, 0.0), (NAN, NAN)],
    "log": [(1, 0.0), (0.0, -INF), (-0.0, -INF), (-1, NAN), (INF, INF)],
    "log2": [(1, 0.0), (8, 3), (0.125, -3), (0.0, -INF), (-0.0, -INF), (-1, NAN), (INF, INF)],
    "log10": [(1, 0.0), (0.0, -INF), (-0.0, -INF), (-1, NAN), (INF, INF)],
    "nextafter": [(0.0, -0.0, -0.0), (-0.0, 0.0, 0.0), (1, 1, 1), (NAN, 1, NAN), (1, NAN, NAN)],
    "pow": POWERS,
    "powr": [
        (2, 3, 8), (4, 0.5, 2), (0.0, 2, 0.0), (0.0, -2, INF), (-1, 2, NAN), (-INF, 2, NAN),
        (INF, 2, INF), (INF, -2, 0.0), (NAN, 2, NAN), (2, NAN, NAN), (0.5, INF, 0.0), (3, 0, 1),
    ],
    "rint": odd((0.0, 0.0), (0.5, 0.0), (1.5, 2), (2.5, 2), (3.5, 4), (0.25, 0.0), (INF, INF)),
    "round": odd((0.0, 0.0), (0.5, 1), (1.5, 2), (2.5, 3), (0.25, 0.0), (INF, INF)),
    "rsqrt": [(4, 0.5), (1, 1), (0.0, INF), (-0.0, -INF), (INF, 0.0), (-1, NAN), (-INF, NAN)],
    "sin": odd((0.0, 0.0), (INF, NAN)),
    "sinh": odd((0.0, 0.0), (INF, INF)),
    "sinpi": odd((0.0, 0.0), (0.5, 1), (1.5, -1), (1, 0.0), (2, 0.0), (100, 0.0), (INF, NAN)),
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (4, 2), (-1, NAN), (INF, INF), (-INF, NAN)],
    "tan": odd((0.0, 0.0), (INF, NAN)),
    "tanh": odd((0.0, 0.0), (INF, 1), (20, 1)),
    "tanpi": odd((0.0, 0.0), (0.25, 1), (2, 0.0), (INF, NAN)),
    "trunc": odd((0.0, 0.0), (0.5, 0.0), (1.75, 1), (INF, INF)),
}  # fmt: skip
# Exact except for these, whose results are no numbers of the format.
ROUNDS = {"acos", "asin", "atan", "atan2"}
NAN_ROW = {name: (NAN,) * len(rows[0]) for name, rows in EDGES.items()}
for name, rows in EDGES.items():
    if name not in ("pow", "copysign"):
        rows.append(NAN_ROW[name])
FORMATS = {name: FLOATS[name] for name in ("float", "half")}


@pytest.fixture(scope="module")
def kernels(compile_shader):
    return compile_shader(
        elementwise(
            {
                f"{name}_{type}{n}": (
                    type + n,
                    [type + n] * (len(rows[0]) - 1),
                    f"{name}({', '.join('xyz'[: len(rows[0]) - 1])})",
                )
                for name, rows in EDGES.items()
                for type, n in (("float", ""), ("half", ""), ("float", "2"))
            }
        )
    )


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("type", ["float", "half", "float2"])
def test_edge_cases(kernels, count, type: str, name: str) -> None:
    format, width = FORMATS[type.rstrip("2")], 1 + type.endswith("2")
    rows = EDGES[name] + EDGES[name][: len(EDGES[name]) % width]
    *operands, exact = (format.round(column) for column in zip(*rows, strict=True))
    out = results(len(rows), format.size)
    kernel = getattr(kernels, f"{name}_{type}")
    kernel(out, *(tensor(x, format) for x in operands), threads=len(rows) // width)
    values = decoded(out, format)
    right = same(values, exact)
    if name in ROUNDS:
        right |= np.abs(values - exact) <= 2 * format.ulp(exact)
    wrong = [(*row, value) for row, value, ok in zip(rows, values, right, strict=True) if not ok]
    assert wrong == []
    count(len(rows))


# ---- two results, integers beside floats ----

SPLIT = """
  int e, f, g; int2 es; float whole, whole_inf; half part; float2 wholes;
  const float m = frexp(data[10], e), zero = frexp(-data[0], f), inf = frexp(INFINITY, g);
  const float2 ms = frexp(float2(data[3], -0.15625f), es);
  const float fraction = modf(-2.25f - data[0], whole), none = modf(-INFINITY, whole_inf);
  const half half_fraction = modf(half(3.5f), part);
  const float2 fractions = modf(float2(data[1] / 4, -8), wholes);
  float cosine; half half_cosine; float2 cosines;
  const float sine = sincos(data[0], cosine);
  const half half_sine = sincos(half(-0.0f), half_cosine);
  const float2 sines = sincos(float2(0, -0.0f), cosines);
  int he; const half hm = frexp(half(0x1p-24f), he);
  int de; const float d = frexp(0x1p-149f * data[1], de);
"""
SPLITS = [
    Check("m", "float", 0.625), Check("zero", "float", -0.0), Check("f", "int", 0),
    Check("inf", "float", INF), Check("ms", "float2", [0.75, -0.625]), Check("es", "int2", [2, -2]),
    Check("fraction", "float", -0.25), Check("whole", "float", -2), Check("none", "float", -0.0),
    Check("whole_inf", "float", -INF), Check("half_fraction", "half", 0.5),
    Check("part", "half", 3), Check("fractions", "float2", [0.25, -0.0]),
    Check("wholes", "float2", [0, -8]), Check("sine", "float", 0.0), Check("cosine", "float", 1),
    Check("half_sine", "half", -0.0), Check("half_cosine", "half", 1),
    Check("sines", "float2", [0.0, -0.0]), Check("cosines", "float2", [1, 1]),
    Check("hm", "half", 0.5), Check("he", "int", -23), Check("d", "float", 0.5),
    Check("e", "int", 4), Check("de", "int", -148),
    Check("ldexp(0.75f, 4)", "float", 12), Check("ldexp(data[1], -149)", "float", 2.0**-149),
    Check("ldexp(data[1], -150)", "float", 0.0), Check("ldexp(data[3], -150)", "float", 2.0**-148),
    Check("ldexp(data[1], 200)", "float", INF), Check("ldexp(-data[1], 127)", "float", -(2.0**127)),
    Check("ldexp(data[1] * 0x1p-149f, 149)", "float", 1), Check("ldexp(NAN, 3)", "float", NAN),
    Check("ldexp(half(3), 2)", "half", 12), Check("ldexp(half(1), -25)", "half", 0),
    Check("ldexp(half(1.5f), -24)", "half", 2.0**-23), Check("ldexp(half(1), 16)", "half", INF),
    Check("ldexp(float2(1, 3), int2(2, -1))", "float2", [4, 1.5]),
    Check("ilogb(data[10])", "int", 3), Check("ilogb(0.75f)", "int", -1),
    Check("ilogb(0x1p-149f)", "int", -149), Check("ilogb(half(0x1p-24f))", "int", -24),
    Check("ilogb(data[0])", "int", -(2**31)), Check("ilogb(float2(8, 0.5f))", "int2", [3, -1]),
    Check("nextafter(data[0], data[1])", "float", 2.0**-149),
    Check("nextafter(data[0], -data[1])", "float", -(2.0**-149)),
    Check("nextafter(data[1], INFINITY)", "float", 1 + 2.0**-23),
    Check("nextafter(data[1], data[0])", "float", 1 - 2.0**-24),
    Check("nextafter(-data[1], data[0])", "float", -1 + 2.0**-24),
    Check("nextafter(FLT_MAX * data[1], INFINITY)", "float", INF),
    Check("nextafter(INFINITY, data[0])", "float", 2.0**128 - 2.0**104),
    Check("nextafter(half(0), half(-1))", "half", -(2.0**-24)),
    Check("nextafter(half(1), half(2))", "half", 1 + 2.0**-10),
    Check("nextafter(half(-1), half(0))", "half", -1 + 2.0**-11),
    Check("nextafter(half(65504), half(INFINITY))", "half", INF),
    Check("nextafter(half(0x1p-24f), half(0))", "half", 0.0),
    Check("nextafter(half2(1, 2), half2(0, 3))", "half2", [1 - 2.0**-11, 2 + 2.0**-9]),
    Check("fma(data[1] + 0x1p-12f, 1 + 0x1p-12f, -1 - 0x1p-11f)", "float", 2.0**-24),
    Check("fract(-1e-9f * data[1])", "float", 1 - 2.0**-24),
    Check("fract(half(-0x1p-20f * data[1]))", "half", 1 - 2.0**-11),
    Check("FP_ILOGB0", "int", -(2**31)),
]  # fmt: skip


@pytest.fixture(scope="module")
def split(compile_shader) -> list[np.ndarray]:
    return evaluate(compile_shader, SPLITS, SPLIT)


@pytest.mark.parametrize("index", range(len(SPLITS)), ids=[c.text for c in SPLITS])
def test_two_results_and_exponents(split, count, index: int) -> None:
    assert mismatches([SPLITS[index]], [split[index]]) == []
    count(size([SPLITS[index]]))


def test_nextafter_walks_through_every_half(compile_shader, count) -> None:
    library = compile_shader(
        elementwise({"up": ("half", ["half"], "nextafter(x, half(INFINITY))")})
    )
    walk = np.sort(HALF.every_value()[np.isfinite(HALF.every_value())])
    walk = np.concatenate([walk[walk < 0], [0.0], walk[walk > 0], [INF]])
    out = results(len(walk) - 1, 2)
    library.up(out, tensor(walk[:-1], HALF), threads=len(walk) - 1)
    assert (decoded(out, HALF) == walk[1:]).all()
    count(len(walk) - 1)

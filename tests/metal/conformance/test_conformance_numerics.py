"""Chapter 8: infinities, NaNs, denormals, rounding of arithmetic, conversions between formats."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msl_evaluation import Check, decoded, elementwise, evaluate, mismatches, results, size, tensor
from msl_formats import FLOAT, FLOATS, FloatFormat, same

pytestmark = pytest.mark.conformance("8.1 Numerical compliance")

DENORMALS = "8.1: denormals may be flushed to zero"
OPERATIONS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
SMALL = {name: format for name, format in FLOATS.items() if format.size == 2}


@pytest.fixture(scope="module")
def kernels(compile_shader):
    table = {}
    for type in FLOATS:
        for place, op in enumerate(OPERATIONS):
            table[f"op{place}_{type}"] = (type, [type] * 2, f"x {op} y")
            table[f"op{place}_{type}4"] = (f"{type}4", [f"{type}4"] * 2, f"x {op} y")
        table[f"reciprocal_{type}"] = (type, [type], f"{type}(1) / x")
        table[f"negate_{type}"] = (type, [type], "-x")
        table[f"product_and_sum_{type}"] = (type, [type] * 3, "x * y + z")
        table[f"scaled_{type}"] = (type, [type], f"{type}(float(x) * 3 + 0.1f)")
        for target in FLOATS:
            table[f"{type}_to_{target}"] = (target, [type], f"{target}(x)")
    return compile_shader(elementwise(table))


def values(format: FloatFormat, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Any bit patterns of the format: infinities, NaNs and denormals too."""
    bits = np.random.default_rng(seed).integers(0, 2 ** (8 * format.size), shape, np.uint64)
    return format.decode(bits.astype(f"u{format.size}"))


def run(
    kernels, name: str, format: FloatFormat, *operands: np.ndarray, width: int = 1
) -> np.ndarray:
    out = results(len(operands[0]), format.size)
    threads = len(operands[0]) // width
    getattr(kernels, name)(out, *(tensor(x, format) for x in operands), threads=threads)
    return decoded(out, format)


@pytest.mark.parametrize("width", [1, 4], ids=["scalars", "vectors"])
@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("place", range(len(OPERATIONS)), ids=list(OPERATIONS))
def test_arithmetic_is_correctly_rounded(
    kernels, differs, count, place: int, type: str, width: int
) -> None:
    differs("mps", DENORMALS, strict=False)
    format = FLOATS[type]
    x, y = values(format, (2, 1 << 16), seed=place)
    with np.errstate(all="ignore"):
        y[::3] = format.round(1.4 * x[::3])  # of about the same magnitude
    got = run(kernels, f"op{place}_{type}{'' if width == 1 else width}", format, x, y, width=width)
    with np.errstate(all="ignore"):
        if format == FLOAT:  # numpy's float32 rounds once, as float64's quotients would not
            operation = list(OPERATIONS.values())[place]
            exact = operation(x.astype(np.float32), y.astype(np.float32)).astype(np.float64)
        else:
            exact = format.round(list(OPERATIONS.values())[place](x, y))
    assert same(got, exact).all()
    count(len(x))


@pytest.mark.parametrize("type", FLOATS)
def test_unary_arithmetic(kernels, differs, count, type: str) -> None:
    differs("mps", DENORMALS, strict=False)
    format = FLOATS[type]
    x = format.every_value() if type in SMALL else values(format, (1 << 16,), seed=9)
    assert same(run(kernels, f"negate_{type}", format, x), -x).all()
    with np.errstate(all="ignore"):
        exact = np.float32(1) / x.astype(np.float32) if format == FLOAT else format.round(1 / x)
    assert same(run(kernels, f"reciprocal_{type}", format, x), exact).all()
    count(2 * len(x))


@pytest.mark.parametrize("type", SMALL)
def test_each_operation_rounds_in_its_own_format(kernels, differs, count, type: str) -> None:
    """A product is a half before something is added to it: no operation is done in float."""
    differs("mps", DENORMALS, strict=False)
    format = SMALL[type]
    x, y, z = values(format, (3, 1 << 15), seed=6)
    with np.errstate(all="ignore"):
        exact = format.round(format.round(x * y) + z)
        fused = format.round(x * y + z)
        wide = FLOAT.round(FLOAT.round(FLOAT.round(x) * 3) + float(np.float32(0.1)))
    got = run(kernels, f"product_and_sum_{type}", format, x, y, z)
    # "a * b + c may be converted to a single fused multiply-add."
    assert (same(got, exact) | same(got, fused)).all()
    assert same(run(kernels, f"scaled_{type}", format, x), format.round(wide)).all()
    count(2 * len(x))


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", FLOATS)
def test_conversion_between_formats(kernels, differs, count, source: str, target: str) -> None:
    """To nearest, ties to even; every tie between two values of a 16-bit format is tried."""
    if source == "float" or target == "bfloat":
        differs("mps", DENORMALS, strict=False)
    from_format, to_format = FLOATS[source], FLOATS[target]
    x = from_format.every_value() if source in SMALL else values(from_format, (1 << 16,), seed=2)
    if source == "float" and target in SMALL:
        every = np.sort(to_format.every_value()[np.isfinite(to_format.every_value())])
        ties = (every[:-1] + every[1:]) / 2
        with np.errstate(over="ignore"):
            near = [np.nextafter(ties.astype(np.float32), np.float32(end)) for end in (-1e9, 1e9)]
        x = np.concatenate([x, ties.astype(np.float32), *near]).astype(np.float64)
    out = results(len(x), to_format.size)
    getattr(kernels, f"{source}_to_{target}")(out, tensor(x, from_format), threads=len(x))
    assert same(decoded(out, to_format), to_format.round(x)).all()
    count(len(x))


INF, NAN = math.inf, math.nan
SPECIAL = [
    Check("data[1] / data[0] - data[1] / data[0]", "float", NAN),
    Check("INFINITY + data[1]", "float", INF), Check("-INFINITY * data[2]", "float", -INF),
    Check("NAN + data[1]", "float", NAN), Check("half(NAN) * half(data[1])", "half", NAN),
    Check("half(data[255]) * half(data[255]) + half(data[1])", "half", 65024),
    Check("half(data[255]) * half(data[255]) * half(data[2])", "half", INF),
    Check("-half(INFINITY)", "half", -INF), Check("bfloat(FLT_MAX)", "bfloat", INF),
    Check("bfloat(data[255]) + bfloat(data[1])", "bfloat", 256),
    Check("bfloat(data[255]) + bfloat(data[255]) + bfloat(data[3])", "bfloat", 512),
    Check("half(data[2]) - half(data[2])", "half", 0.0), Check("-data[0] + data[0]", "float", 0.0),
    Check("-data[0] - data[0]", "float", -0.0), Check("-data[0] * data[1]", "float", -0.0),
    Check("(1 << 24) + 1 + data[0]", "float", 2.0**24),
    Check("(data[1] + 0x1p24f) - 0x1p24f", "float", 0.0),
    Check("data[3] * 0x1p-149f", "float", 3 * 2.0**-149),
    Check("0x1p-126f * data[1] / 2", "float", 2.0**-127),
    Check("half(data[3]) * half(0x1p-24f)", "half", 3 * 2.0**-24),
    Check("half(0x1p-25f * data[1])", "half", 0.0),
    Check("half(0x1.8p-24f * data[1])", "half", 2.0**-23),
    Check("bfloat(0x1p-133f * data[1])", "bfloat", 2.0**-133),
]  # fmt: skip


@pytest.fixture(scope="module")
def special(compile_shader) -> list[np.ndarray]:
    return evaluate(compile_shader, SPECIAL)


@pytest.mark.parametrize("index", range(len(SPECIAL)), ids=[c.text for c in SPECIAL])
def test_special_arithmetic(special, differs, count, index: int) -> None:
    if "p-1" in SPECIAL[index].text:
        differs("mps", DENORMALS, strict=False)
    assert mismatches([SPECIAL[index]], [special[index]]) == []
    count(size([SPECIAL[index]]))

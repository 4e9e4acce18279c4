"""Table 6.4: math functions, within the errors of tables 8.1 to 8.3 against float64.

The tables' ULP is the distance between the neighbours of the exact result. "Correctly rounded" is
half of one, here with a hair added for float64's own error. A function of half is tried on all of
half's values; one of float on random ones, denormals among them. A GPU may flush denormals (8.5):
an operand or a result that is one may then be zero. The cpu and cuda backends flush none but, on
cuda, in the fast functions.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from msl_evaluation import decoded, elementwise, results, tensor
from msl_formats import FLOAT, HALF, FloatFormat

pytestmark = pytest.mark.conformance("6.5 Math functions, errors")

ROUNDED = 0.5 + 2.0**-20  # correctly rounded
EXACT = 0.0
FLUSHES_DENORMALS = {"cpu": False, "cuda": False, "mps": True}
COUNT = 8192

Array = np.ndarray


@dataclass(frozen=True)
class Function:
    """A function and what its results may be off by.

    Attributes:
        reference: the exact function, on float64.
        ulps: the error that tables 8.1 (float) and 8.3 (half) allow.
        domains: an interval for each operand; infinite: anything.
        logarithmic: whether magnitudes are spread evenly over their exponents.
    """

    reference: Callable[..., Array]
    ulps: float
    half_ulps: float | None
    domains: tuple[tuple[float, float], ...] = ((-np.inf, np.inf),)
    fast: Callable[..., Array] | None = None


ALL, POSITIVE, UNIT = (-np.inf, np.inf), (0.0, np.inf), (-1.0, 1.0)


def reduced(x: Array) -> Array:
    """x less the nearest even integer, exactly."""
    return x - 2 * np.rint(x / 2)


def sinpi(x: Array) -> Array:
    turn = reduced(x)
    near = np.where(np.abs(turn) > 0.5, np.copysign(1 - np.abs(turn), turn), turn)
    return np.sin(np.pi * near)


def cospi(x: Array) -> Array:
    return np.sin(np.pi * (0.5 - np.abs(reduced(x))))


def tanpi(x: Array) -> Array:
    return sinpi(x) / cospi(x)


def ulps(allowed: object) -> Callable[..., Array]:
    """An error in the result's units of the last place."""
    return lambda exact, *x: allowed * FLOAT.ulp(exact)


def within(error: float, inside: tuple[float, float], otherwise: float) -> Callable[..., Array]:
    """An absolute error for operands in an interval, and in ULP elsewhere."""
    low, high = inside
    return lambda exact, x: np.where((x >= low) & (x <= high), error, otherwise * FLOAT.ulp(exact))


def relative(factor: Callable[..., Array]) -> Callable[..., Array]:
    """An error as a share of the result, for what table 8.2 gives as a formula of other functions.

    The share is what the errors of these and of the roundings between come to.
    """

    def allowed(exact: Array, *x: Array) -> Array:
        share = factor(*x)
        open_ended = ~np.isfinite(share)
        return np.where(open_ended, np.inf, np.abs(exact) * share) + FLOAT.smallest_normal

    return allowed


HALF_TURN = (-np.pi, np.pi)
E23 = 2.0**-23
FUNCTIONS: dict[str, Function] = {
    "acos": Function(np.arccos, 4, 1, (UNIT,), ulps(5)),
    "acosh": Function(np.arccosh, 4, 1, ((1, np.inf),)),
    "asin": Function(np.arcsin, 4, 1, (UNIT,), ulps(5)),
    "asinh": Function(np.arcsinh, 4, 1),
    "atan": Function(np.arctan, 5, 1, fast=ulps(5)),
    "atanh": Function(np.arctanh, 5, 1, (UNIT,)),
    "ceil": Function(np.ceil, EXACT, EXACT, fast=ulps(EXACT)),
    "cos": Function(np.cos, 4, 1, fast=within(2.0**-13, HALF_TURN, np.inf)),
    "cosh": Function(np.cosh, 4, 1, ((-88, 88),), relative(lambda x: (8 + 4 * np.abs(x)) * E23)),
    "cospi": Function(cospi, 4, 1, fast=within(2.0**-13, UNIT, np.inf)),
    "exp": Function(
        np.exp, 4, 1, ((-104, 89),),
        lambda exact, x: (3 + np.floor(np.abs(2 * x))) * FLOAT.ulp(exact),
    ),
    "exp2": Function(
        np.exp2, 4, 1, ((-150, 129),),
        lambda exact, x: (3 + np.floor(np.abs(2 * x))) * FLOAT.ulp(exact),
    ),
    "exp10": Function(
        lambda x: 10.0**x, 4, 1, ((-45, 39),), relative(lambda x: (8 + 12 * np.abs(x)) * E23)
    ),
    "fabs": Function(np.abs, EXACT, EXACT, fast=ulps(EXACT)),
    "abs": Function(np.abs, EXACT, EXACT),
    "floor": Function(np.floor, EXACT, EXACT, fast=ulps(EXACT)),
    # "Less than 1", which a result just below it must not be rounded to.
    "fract": Function(
        lambda x: np.minimum(x - np.floor(x), 1 - 2.0**-24), ROUNDED, 1, fast=ulps(ROUNDED)
    ),
    "log": Function(np.log, 4, 1, (POSITIVE,), within(2.0**-21, (0.5, 2), 3)),
    "log2": Function(np.log2, 4, 1, (POSITIVE,), within(2.0**-22, (0.5, 2), 2)),
    "log10": Function(np.log10, 4, 1, (POSITIVE,), within(2.0**-21, (0.5, 2), 4)),
    "rint": Function(np.rint, EXACT, EXACT, fast=ulps(EXACT)),
    "round": Function(
        lambda x: np.trunc(x + np.copysign(0.5, x)), EXACT, EXACT, fast=ulps(EXACT)
    ),
    "rsqrt": Function(lambda x: 1 / np.sqrt(x), ROUNDED, ROUNDED, (POSITIVE,), ulps(2)),
    "sin": Function(np.sin, 4, 1, fast=within(2.0**-13, HALF_TURN, np.inf)),
    "sinh": Function(np.sinh, 4, 1, ((-88, 88),)),
    "sinpi": Function(sinpi, 4, 1, fast=within(2.0**-13, UNIT, np.inf)),
    "sqrt": Function(np.sqrt, ROUNDED, ROUNDED, (POSITIVE,), ulps(4)),
    "tan": Function(np.tan, 6, 1),
    "tanh": Function(np.tanh, 5, 1),
    "tanpi": Function(tanpi, 6, 1),
    "trunc": Function(np.trunc, EXACT, EXACT, fast=ulps(EXACT)),
    "atan2": Function(np.arctan2, 6, 1, (ALL, ALL)),
    "copysign": Function(np.copysign, EXACT, EXACT, (ALL, ALL), ulps(EXACT)),
    "divide": Function(np.divide, ROUNDED, ROUNDED, (ALL, ALL)),
    "fdim": Function(lambda x, y: np.maximum(x - y, 0), ROUNDED, ROUNDED, (ALL, ALL)),
    "fmax": Function(np.fmax, EXACT, EXACT, (ALL, ALL), ulps(EXACT)),
    "fmin": Function(np.fmin, EXACT, EXACT, (ALL, ALL), ulps(EXACT)),
    "fmod": Function(np.fmod, EXACT, EXACT, (ALL, ALL)),
    "pow": Function(
        np.power, 16, None, (POSITIVE, (-20, 20)),
        relative(lambda x, y: (16 + 4 * np.abs(y) * (1 + np.abs(np.log2(x)))) * E23),
    ),
    "powr": Function(
        np.power, 16, None, (POSITIVE, (-20, 20)),
        relative(lambda x, y: (16 + 4 * np.abs(y) * (1 + np.abs(np.log2(x)))) * E23),
    ),
    "fma": Function(lambda x, y, z: x * y + z, ROUNDED, ROUNDED, (ALL, ALL, ALL), ulps(ROUNDED)),
    "fmax3": Function(lambda x, y, z: np.fmax(x, np.fmax(y, z)), EXACT, EXACT, (ALL, ALL, ALL)),
    "fmin3": Function(lambda x, y, z: np.fmin(x, np.fmin(y, z)), EXACT, EXACT, (ALL, ALL, ALL)),
    "fmedian3": Function(
        lambda x, y, z: np.sort(np.stack([x, y, z]), axis=0)[1], EXACT, EXACT, (ALL, ALL, ALL)
    ),
}  # fmt: skip
VARIANTS = [(name, space) for name in FUNCTIONS for space in ("", "precise")] + [
    (name, "fast") for name, function in FUNCTIONS.items() if function.fast
]


@pytest.fixture(scope="module")
def kernels(compile_shader):
    table = {}
    for name, function in FUNCTIONS.items():
        n = len(function.domains)
        call = f"{name}({', '.join('xyz'[:n])})"
        table[f"{name}_float"] = ("float", ["float"] * n, call)
        table[f"{name}_float_precise"] = ("float", ["float"] * n, f"precise::{call}")
        table[f"{name}_half"] = ("half4", ["half4"] * n, call)
        if function.fast:
            table[f"{name}_float_fast"] = ("float", ["float"] * n, f"fast::{call}")
    return compile_shader(elementwise(table))


def samples(name: str, place: int, domain: tuple[float, float], format: FloatFormat) -> Array:
    """Values of the format in a domain: by magnitude, evenly, and integers with their halves."""
    low, high = domain
    generator = np.random.default_rng(zlib.crc32(f"{name} {place}".encode()))
    third = COUNT // 4
    exponents = generator.uniform(np.log2(format.smallest), np.log2(format.largest), 2 * third)
    signs = generator.choice([-1.0, 1.0], 2 * third)
    spread = signs * np.exp2(exponents)
    bounded = max(low, -60.0), min(high, 60.0)
    even = generator.uniform(*bounded, third)
    halves = np.rint(generator.uniform(*bounded, third) * 2) / 2
    values = format.round(np.concatenate([spread, even, halves]))
    outside = (values < low) | (values > high)
    values[outside] = format.round(generator.uniform(*bounded, outside.sum()))
    return np.clip(values, low, high)


def check(
    out: Array,
    exact: Array,
    allowed: Array,
    operands: list[Array],
    format: FloatFormat,
    flushes: bool,
) -> int:
    """Compares where the exact result is a number that the format can hold, and counts these."""
    finite = np.isfinite(exact) & (np.abs(exact) <= format.largest)
    for x in operands:
        finite &= np.isfinite(x)
    with np.errstate(invalid="ignore"):
        wrong = finite & ~(np.abs(out - exact) <= allowed)
    if flushes:
        tiny = np.abs(exact) < 2 * format.smallest_normal
        for x in operands:
            tiny |= np.abs(x) < format.smallest_normal
        wrong &= ~tiny
    worst = [(*(x[i] for x in operands), out[i], exact[i]) for i in np.nonzero(wrong)[0][:5]]
    assert worst == [], f"{wrong.sum()} of {finite.sum()}"
    return int(finite.sum())


@pytest.mark.parametrize(
    ("name", "space"), VARIANTS, ids=[f"{s + '::' if s else ''}{n}" for n, s in VARIANTS]
)
def test_float(kernels, backend, count, name: str, space: str) -> None:
    function = FUNCTIONS[name]
    operands = [samples(name, i, domain, FLOAT) for i, domain in enumerate(function.domains)]
    out = results(len(operands[0]), 4)
    kernel = getattr(kernels, f"{name}_float{'_' + space if space else ''}")
    kernel(out, *(tensor(x, FLOAT) for x in operands), threads=len(operands[0]))
    with np.errstate(all="ignore"):
        exact = function.reference(*operands)
        bound = function.fast if space == "fast" else ulps(function.ulps)
        allowed = bound(exact, *operands)
    flushes = FLUSHES_DENORMALS[backend] or space == "fast"
    count(check(decoded(out, FLOAT), exact, allowed, operands, FLOAT, flushes))


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if f.half_ulps is not None])
def test_half(kernels, backend, count, name: str) -> None:
    function = FUNCTIONS[name]
    every = HALF.every_value()
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    operands = [every, *(generator.permutation(every) for _ in function.domains[1:])]
    out = results(len(every), 2)
    kernel = getattr(kernels, f"{name}_half")
    kernel(out, *(tensor(x, HALF) for x in operands), threads=len(every) // 4)
    with np.errstate(all="ignore"):
        exact = function.reference(*operands)
    allowed = function.half_ulps * HALF.ulp(exact)
    flushes = FLUSHES_DENORMALS[backend]
    count(check(decoded(out, HALF), exact, allowed, operands, HALF, flushes))

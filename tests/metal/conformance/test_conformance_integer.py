"""Table 6.2: functions on integers, against Python's unbounded ones."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest
import torch
from msl_evaluation import HEADER
from msl_formats import INTEGERS, IntegerFormat

pytestmark = pytest.mark.conformance("6.3 Integer functions")

Reference = Callable[[int, int, int, IntegerFormat], int]


def rotated(x: int, count: int, t: IntegerFormat) -> int:
    count %= t.width
    return t.bits(x) << count | t.bits(x) >> (t.width - count)


def field(x: int, offset: int, count: int, t: IntegerFormat) -> int:
    value = t.bits(x) >> offset & ((1 << count) - 1)
    return value - (1 << count) if t.signed and count and value >> (count - 1) else value


def inserted(base: int, insert: int, offset: int, count: int) -> int:
    mask = ((1 << count) - 1) << offset
    return (base & ~mask) | (insert << offset & mask)


def extent(z: int, t: IntegerFormat) -> tuple[int, int]:
    """An offset and a number of bits that fit in the type, from an operand."""
    offset = (z & 63) % t.width
    return offset, (z >> 1 & 63) % (t.width - offset + 1)


EXTENT = "uint(z & 63) % BITS, uint(z >> 1 & 63) % (BITS + 1 - uint(z & 63) % BITS)"
# The names of vectors' functions are the scalars', so the same expressions serve both.
FUNCTIONS: dict[str, Reference] = {
    "abs(x)": lambda x, y, z, t: abs(x),
    "absdiff(x, y)": lambda x, y, z, t: abs(x - y),
    "addsat(x, y)": lambda x, y, z, t: t.clamped(x + y),
    "clz(x)": lambda x, y, z, t: t.width - t.bits(x).bit_length(),
    "ctz(x)": lambda x, y, z, t: (x & -x).bit_length() - 1 if x else t.width,
    "hadd(x, y)": lambda x, y, z, t: (x + y) >> 1,
    "madhi(x, y, z)": lambda x, y, z, t: ((x * y) >> t.width) + z,
    "madsat(x, y, z)": lambda x, y, z, t: t.clamped(x * y + z),
    "max(x, y)": lambda x, y, z, t: max(x, y),
    "max3(x, y, z)": lambda x, y, z, t: max(x, y, z),
    "median3(x, y, z)": lambda x, y, z, t: sorted((x, y, z))[1],
    "min(x, y)": lambda x, y, z, t: min(x, y),
    "min3(x, y, z)": lambda x, y, z, t: min(x, y, z),
    "mulhi(x, y)": lambda x, y, z, t: (x * y) >> t.width,
    "popcount(x)": lambda x, y, z, t: bin(t.bits(x)).count("1"),
    "reverse_bits(x)": lambda x, y, z, t: int(f"{t.bits(x):0{t.width}b}"[::-1], 2),
    "rhadd(x, y)": lambda x, y, z, t: (x + y + 1) >> 1,
    "rotate(x, y)": lambda x, y, z, t: rotated(x, y, t),
    "subsat(x, y)": lambda x, y, z, t: t.clamped(x - y),
    "clamp(x, min(y, z), max(y, z))": lambda x, y, z, t: sorted((min(y, z), x, max(y, z)))[1],
}
BIT_FIELDS: dict[str, Reference] = {
    f"extract_bits(x, {EXTENT})": lambda x, y, z, t: field(x, *extent(z, t), t),
    f"insert_bits(x, y, {EXTENT})": lambda x, y, z, t: inserted(x, y, *extent(z, t)),
}
CONSTANT_FIELDS: dict[str, Reference] = {
    "extract_bits(x, 2, 5)": lambda x, y, z, t: field(x, 2, 5, t),
    "extract_bits(x, 3, 0)": lambda x, y, z, t: 0,
    "extract_bits(x, 0, BITS)": lambda x, y, z, t: x,
    "insert_bits(x, y, 1, 6)": lambda x, y, z, t: inserted(x, y, 1, 6),
    "insert_bits(x, y, 4, 0)": lambda x, y, z, t: x,
    "insert_bits(x, y, 0, BITS)": lambda x, y, z, t: y,
}
SCALAR_FUNCTIONS = {**FUNCTIONS, **BIT_FIELDS, **CONSTANT_FIELDS}
VECTOR_FUNCTIONS = {**FUNCTIONS, **CONSTANT_FIELDS}


def operands(t: IntegerFormat) -> list[tuple[int, int, int]]:
    """All triples of the type's edges, and some of random values."""
    edges = [t.low, t.low + 1, 0, 1, 2, 77, t.high - 1, t.high]
    if t.signed:
        edges += [-1, -77]
    random_numbers = random.Random(t.name)
    numbers = [random_numbers.randint(t.low, t.high) for _ in range(3 * 500)]
    return [*itertools.product(edges, repeat=3), *zip(*[iter(numbers)] * 3, strict=True)]


@pytest.fixture(scope="module")
def functions(compile_shader):
    def body(expressions: dict[str, Reference]) -> str:
        rows = enumerate(expressions)
        return "".join(f"  out[{k} * n + i] = S({text});\n" for k, text in rows)

    template = "template <typename T, uint BITS, typename S>\nvoid {}(device S* out, {}) {{\n{}}}\n"
    kernels = "".join(
        f"kernel void on_{name}{n}(device {name}{n}* out, constant {name}{n}* in,\n"
        f"  constant uint& n, uint i [[thread_position_in_grid]]) {{\n"
        f"  {'vectors' if n else 'scalars'}<{name}, {format.width}>(out, in, n, i); }}\n"
        for name, format in INTEGERS.items()
        for n in ("", "4")
    )
    values = "constant S* in, uint n, uint i"
    start = "  const S x = in[i], y = in[n + i], z = in[2 * n + i];\n"
    return compile_shader(
        HEADER
        + template.format("scalars", values, start + body(SCALAR_FUNCTIONS))
        + template.format("vectors", values, start + body(VECTOR_FUNCTIONS))
        + kernels
    )


@pytest.fixture(scope="module")
def results(functions) -> Callable[[str, int], dict[str, list[int]]]:
    known: dict[tuple[str, int], dict[str, list[int]]] = {}

    def launch(name: str, n: int) -> dict[str, list[int]]:
        if (name, n) not in known:
            format, table = INTEGERS[name], SCALAR_FUNCTIONS if n == 1 else VECTOR_FUNCTIONS
            columns = list(zip(*operands(format), strict=True))
            dtype = getattr(torch, str(format.storage))
            threads = len(columns[0]) // n
            out = torch.zeros(len(table), len(columns[0]), dtype=dtype)
            kernel = getattr(functions, f"on_{name}{'' if n == 1 else n}")
            kernel(out, torch.tensor(columns, dtype=dtype), threads, threads=threads)
            known[name, n] = dict(zip(table, out.tolist(), strict=True))
        return known[name, n]

    return launch


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize(
    ("text", "n"),
    [(text, 1) for text in SCALAR_FUNCTIONS] + [(text, 4) for text in VECTOR_FUNCTIONS],
    ids=lambda value: value.replace(EXTENT, "…") if isinstance(value, str) else f"vec{value}",
)
def test_integer_function(results, count, text: str, n: int, name: str) -> None:
    format = INTEGERS[name]
    values = operands(format)
    expected = [format.wrapped(SCALAR_FUNCTIONS[text](*triple, format)) for triple in values]
    assert results(name, n)[text] == expected
    count(len(expected))


# ---- 24-bit multiplication ----


@pytest.mark.parametrize("name", ["int", "uint"])
@pytest.mark.parametrize("n", ["", "2"], ids=["scalars", "vectors"])
def test_24_bit_multiplication(compile_shader, count, name: str, n: str) -> None:
    library = compile_shader(
        f"{HEADER}kernel void f(device {name}{n}* out, constant {name}{n}* in,"
        " uint i [[thread_position_in_grid]]) {"
        f" const {name}{n} x = in[3 * i], y = in[3 * i + 1], z = in[3 * i + 2];"
        " out[2 * i] = mul24(x, y); out[2 * i + 1] = mad24(x, y, z); }"
    )
    low, high = (-(2**23), 2**23 - 1) if name == "int" else (0, 2**24 - 1)
    factors = [low, low + 1, 0, 1, 3, 4097, high - 1, high]
    format = INTEGERS[name]
    triples = [
        (x, y, z)
        for x, y in itertools.product(factors, repeat=2)
        for z in (0, 7, format.high, format.low)
    ]
    dtype = getattr(torch, str(format.storage))
    width = 2 if n else 1
    out = torch.zeros(len(triples) // width, 2, width, dtype=dtype)
    columns = torch.tensor(triples, dtype=dtype).reshape(-1, width, 3).transpose(1, 2).contiguous()
    library.f(out, columns, threads=len(triples) // width)
    rows = out.transpose(1, 2).reshape(-1, 2).tolist()
    expected = [[format.wrapped(x * y), format.wrapped(x * y + z)] for x, y, z in triples]
    assert rows == expected
    count(2 * len(triples))

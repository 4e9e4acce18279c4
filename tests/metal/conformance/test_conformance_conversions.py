"""Conversions between types: what a cast gives, what is implicit, as_type."""

from __future__ import annotations

import itertools
import platform

import numpy as np
import pytest
import torch
from msl_evaluation import HEADER
from msl_formats import BOOL, FLOATS, INTEGERS, SCALARS, FloatFormat, IntegerFormat, Layout, same

pytestmark = pytest.mark.conformance("2.21 Conversions")

Format = FloatFormat | IntegerFormat
NAN_CAST = "a scalar cast is the processor's instruction, which makes NaN the highest bit alone"
X86 = platform.machine() in ("x86_64", "AMD64")
NAN_DIFFERS = {"cpu": {"int", "long", "ulong"} if X86 else set(), "cuda": {"long", "ulong"}}


def edges(format: Format) -> list[int | float]:
    """Values of a format about its own edges and those of the others."""
    if format == BOOL:
        return [0, 1]
    if isinstance(format, IntegerFormat):
        near = {0, 1, 2, 3, 7, 100, 127, 128, 200, 255, 256, 2047, 2049, 32767, 32768, 65504, 65519}
        near |= {65520, 65535, 2**24, 2**24 + 1, 2**24 + 3, 2**31 - 1, 2**31, 2**32 - 1, 2**40 + 1}
        near |= {0x1010001, 0x102FFFF, 0x1018000, 0x10100000001}  # about bfloat's ties
        near |= {format.high, format.high - 1, format.low, format.low + 1, 2**53 + 1, 2**62}
        values = sorted(near | {-x for x in near})
        return [x for x in values if format.low <= x <= format.high]
    positive = [0, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 3.99, 100.5, 127.9, 255, 2049, 32767, 65504, 65519]
    positive += [65520, 1e5, 2**24 + 2, 2**31, 2**40, 2**62, 1e20, 1e38, format.largest, np.inf]
    positive += [format.smallest, format.smallest_normal, format.epsilon, 1e-8, 6e-8, 1e-40]
    values = format.round([*positive, *(-x for x in positive)])
    return list(dict.fromkeys([*values.tolist(), -0.0, np.nan]))


def converted(value: int | float, to: Format) -> int | float | None:
    """The specification's result; None where it leaves one open."""
    if to == BOOL:
        return int(value != 0)
    if isinstance(to, FloatFormat):
        return float(to.round(value))
    if isinstance(value, int):
        return to.wrapped(value)
    if np.isnan(value):
        return 0
    if np.isinf(value) or not to.low <= int(value) <= to.high:
        return None
    return int(value)


def stored(values: list[int | float], format: Format) -> torch.Tensor:
    if isinstance(format, FloatFormat):
        data = format.encode(values)
    else:
        data = np.array(values, dtype=format.storage)
    return torch.from_numpy(np.array(data).view(np.uint8).reshape(-1)).clone()


def loaded(out: torch.Tensor, format: Format) -> list[int | float]:
    if isinstance(format, FloatFormat):
        return format.decode(out.numpy().view(f"u{format.size}")).tolist()
    return out.numpy().view(format.storage).tolist()


@pytest.fixture(scope="module")
def casts(compile_shader):
    kernels = []
    for n, source in itertools.product(("", "4"), SCALARS):
        outputs = ", ".join(f"device {to}{n}* {to}_" for to in SCALARS)
        rows = " ".join(f"{to}_[i] = static_cast<{to}{n}>(x);" for to in SCALARS)
        kernels.append(
            f"kernel void {source}{n}_casts(constant {source}{n}* in, {outputs},\n"
            f"  uint i [[thread_position_in_grid]]) {{ const {source}{n} x = in[i]; {rows} }}\n"
        )
    return compile_shader(HEADER + "".join(kernels))


@pytest.mark.parametrize("source", SCALARS)
@pytest.mark.parametrize("n", [1, 4], ids=["scalars", "vectors"])
def test_casts(casts, backend, count, n: int, source: str) -> None:
    values = edges(SCALARS[source])
    values += values[: -len(values) % 4]
    outs = {
        to: torch.zeros(len(values) * format.size, dtype=torch.uint8)
        for to, format in SCALARS.items()
    }
    kernel = getattr(casts, f"{source}{'' if n == 1 else n}_casts")
    kernel(stored(values, SCALARS[source]), *outs.values(), threads=len(values) // n)
    nan_differs = NAN_DIFFERS.get(backend, set()) if n == 1 else set()  # test_nan_to_integer
    for to, out in outs.items():
        format = SCALARS[to]
        for value, result in zip(values, loaded(out, format), strict=True):
            expected = converted(value, format)
            if value != value and to in nan_differs:
                expected = None
            if expected is not None:
                assert same(result, expected), (value, to, result, expected)
                count(1)


@pytest.mark.parametrize("to", INTEGERS)
def test_nan_to_integer(casts, backend, differs, count, to: str) -> None:
    if to in NAN_DIFFERS.get(backend, set()):
        differs(backend, NAN_CAST)
    outs = {name: torch.zeros(format.size, dtype=torch.uint8) for name, format in SCALARS.items()}
    casts.float_casts(stored([np.nan], FLOATS["float"]), *outs.values(), threads=1)
    assert loaded(outs[to], INTEGERS[to]) == [0]
    count(1)


# ---- what is implicit ----


def implicit_conversions() -> dict[tuple[str, str], bool]:
    """Whether a value of the first type can stand where the second is wanted."""
    table = {
        (source, to): not (to == "bfloat" and source in ("half", "float"))
        and (source, to) != ("bfloat", "half")
        for source in SCALARS
        for to in SCALARS
    }
    vectors = ["int2", "int4", "uint4", "float2", "float4", "half4", "bfloat4", "long4", "bool4"]
    matrices = ["float2x2", "half2x2", "float4x4"]
    for a, b in itertools.product([*vectors, *matrices], repeat=2):
        table[a, b] = a == b
    for scalar in ("int", "float", "half", "bool"):
        for vector in vectors:
            table[scalar, vector] = True
            table[vector, scalar] = False
        for matrix in matrices:
            table[scalar, matrix] = table[matrix, scalar] = False
    for scalar in ("float", "half", "int", "uchar"):
        table[f"packed_{scalar}3", f"{scalar}3"] = table[f"{scalar}3", f"packed_{scalar}3"] = True
        table[f"packed_{scalar}3", f"{scalar}4"] = table[f"{scalar}4", f"packed_{scalar}3"] = False
    return table


IMPLICIT = implicit_conversions()


@pytest.fixture(scope="module")
def convertible(compile_shader) -> dict[tuple[str, str], bool]:
    rows = ", ".join(f"is_convertible_v<{a}, {b}>" for a, b in IMPLICIT)
    library = compile_shader(
        f"{HEADER}constant bool rows[] = {{ {rows} }};\n"
        "kernel void f(device uchar* out, uint i [[thread_position_in_grid]]) { out[i] = rows[i]; }"
    )
    out = torch.zeros(len(IMPLICIT), dtype=torch.uint8)
    library.f(out, threads=len(IMPLICIT))
    return dict(zip(IMPLICIT, map(bool, out.tolist()), strict=True))


@pytest.mark.parametrize("source", sorted({source for source, _ in IMPLICIT}))
def test_implicit_conversions(convertible, count, source: str) -> None:
    rows = {pair: expected for pair, expected in IMPLICIT.items() if pair[0] == source}
    assert {pair: convertible[pair] for pair in rows} == rows
    count(len(rows))


# ---- as_type ----

AS_TYPE = {
    1: ["char", "uchar"],
    2: ["short", "ushort", "half", "bfloat", "char2", "uchar2"],
    4: [
        "int", "uint", "float", "short2", "ushort2", "half2", "bfloat2", "char4", "uchar4",
    ],
    8: [
        "long", "ulong", "int2", "uint2", "float2", "short4", "ushort4", "half4", "bfloat4",
    ],
    16: ["int4", "uint4", "float4", "long2", "ulong2"],
    32: ["long4", "ulong4"],
}  # fmt: skip
THREE_OF_FOUR = [("float4", "float3"), ("int4", "uint3"), ("half4", "short3"), ("uchar4", "char3")]
PAIRS = [pair for types in AS_TYPE.values() for pair in itertools.product(types, repeat=2)]
PAIRS += THREE_OF_FOUR


@pytest.fixture(scope="module")
def reinterpreted(compile_shader) -> tuple[bytes, dict[tuple[str, str], bytes]]:
    rows = "".join(
        f"  *(device {to}*)(out + {32 * i}) = as_type<{to}>(*(constant {source}*)in);\n"
        for i, (source, to) in enumerate(PAIRS)
    )
    library = compile_shader(
        f"{HEADER}kernel void f(device uchar* out, constant uchar* in) {{\n{rows}}}"
    )
    data = bytes(range(0x81, 0x81 + 32))  # negative as signed bytes, no NaN as any float
    out = torch.zeros(32 * len(PAIRS), dtype=torch.uint8)
    library.f(out, torch.tensor(list(data), dtype=torch.uint8), threads=1)
    raw = bytes(out.tolist())
    return data, {pair: raw[32 * i : 32 * i + 32] for i, pair in enumerate(PAIRS)}


@pytest.mark.parametrize("source", dict.fromkeys(source for source, _ in PAIRS))
def test_as_type_keeps_every_bit(reinterpreted, count, source: str) -> None:
    data, outs = reinterpreted
    for (from_type, to), out in outs.items():
        if from_type == source:
            layout = Layout.of(to)
            used = max(1, *layout.shape) * layout.scalar.size if layout.shape else layout.size
            assert out[:used] == data[:used], to
            count(1)

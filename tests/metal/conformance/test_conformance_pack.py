"""Tables 6.23 and 6.24, with the conversions of tables 8.6 and 8.7: packed normalised integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from msl_evaluation import decoded, elementwise, results, tensor
from msl_formats import FLOAT, HALF, FloatFormat

pytestmark = pytest.mark.conformance("6.14 Pack and unpack functions")

COUNT = 4096
FORMATS = {"float": FLOAT, "half": HALF}


@dataclass(frozen=True)
class Packing:
    """A packed format: the widths of its fields from the lowest bits up, and what they mean."""

    pack: str
    unpack: str
    widths: tuple[int, ...]
    signed: bool = False
    srgb: bool = False

    @property
    def word(self) -> str:
        return "ushort" if sum(self.widths) == 16 else "uint"

    def scale(self, width: int) -> int:
        return 2 ** (width - self.signed) - 1


PACKINGS = [
    Packing("unorm4x8", "unorm4x8", (8,) * 4),
    Packing("snorm4x8", "snorm4x8", (8,) * 4, signed=True),
    Packing("srgb_unorm4x8", "unorm4x8_srgb", (8,) * 4, srgb=True),
    Packing("unorm2x16", "unorm2x16", (16,) * 2),
    Packing("snorm2x16", "snorm2x16", (16,) * 2, signed=True),
    Packing("unorm10a2", "unorm10a2", (10, 10, 10, 2)),
    Packing("snorm10a2", "snorm10a2", (10, 10, 10, 2), signed=True),  # Metal 4
    Packing("unorm565", "unorm565", (5, 6, 5)),
]
CASES = [(packing, type) for packing in PACKINGS for type in FORMATS]
IDS = [f"{packing.pack}-{type}" for packing, type in CASES]


@pytest.fixture(scope="module")
def kernels(compile_shader):
    table = {}
    for p, type in CASES:
        vector = f"{type}{len(p.widths)}"
        packed = f"packed_{vector}"
        table[f"pack_{p.pack}_{type}"] = (
            p.word, [packed], f"pack_{type}_to_{p.pack}({vector}(x))",
        )  # fmt: skip
        table[f"unpack_{p.pack}_{type}"] = (packed, [p.word], f"unpack_{p.unpack}_to_{type}(x)")
    return compile_shader(elementwise(table), metal_version=400)


def linear_to_srgb(c: np.ndarray) -> np.ndarray:
    return np.where(c < 0.0031308, 12.92 * c, 1.055 * c ** (1 / 2.4) - 0.055)


def srgb_to_linear(c: np.ndarray) -> np.ndarray:
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def by_colour(p: Packing, values: np.ndarray, convert: Callable[[np.ndarray], np.ndarray]):
    """Red, green and blue converted in an sRGB format; alpha is linear."""
    return np.stack([convert(v) if p.srgb and i < 3 else v for i, v in enumerate(values)])


def fields(p: Packing, words: np.ndarray) -> np.ndarray:
    """A row for each field, signed where the format is."""
    rows, shift = [], 0
    for width in p.widths:
        field = words.astype(np.int64) >> shift & (2**width - 1)
        rows.append(np.where(p.signed & (field >= 2 ** (width - 1)), field - 2**width, field))
        shift += width
    return np.stack(rows)


def components(p: Packing, format: FloatFormat) -> np.ndarray:
    """Edges, values about the ties between two integers, and random ones; a row a component."""
    low = -1.25 if p.signed else -0.25
    generator = np.random.default_rng(sum(p.widths))
    rows = generator.uniform(low, 1.25, (len(p.widths), COUNT))
    rows[:, :8] = [0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-3, -0.0]
    for row, width in zip(rows, p.widths, strict=True):
        ties = (generator.integers(0, p.scale(width), COUNT // 4) + 0.5) / p.scale(width)
        row[8 : 8 + COUNT // 4] = ties
    return format.round(rows)


@pytest.mark.parametrize(("p", "type"), CASES, ids=IDS)
def test_pack(kernels, count, p: Packing, type: str) -> None:
    format = FORMATS[type]
    values = components(p, format)
    out = results(COUNT, sum(p.widths) // 8)
    getattr(kernels, f"pack_{p.pack}_{type}")(out, tensor(values.T, format), threads=COUNT)
    got = fields(p, out.numpy().view(np.uint16 if p.word == "ushort" else np.uint32))
    clamped = np.clip(np.nan_to_num(values, nan=0.0), -1.0 if p.signed else 0.0, 1.0)
    with np.errstate(invalid="ignore"):
        clamped = by_colour(p, clamped, linear_to_srgb)
    scales = np.array([[p.scale(width)] for width in p.widths])
    # "fabs(reference - integer) < 1" for sRGB; others round the float product to nearest even.
    if p.srgb:
        assert (np.abs(got[:3] - clamped[:3] * scales[:3]) < 1).all()
        got, clamped, scales = got[3:], clamped[3:], scales[3:]
    expected = np.rint(FLOAT.round(clamped * scales))
    assert (got == expected).all()
    count(values.size)


@pytest.mark.parametrize(("p", "type"), CASES, ids=IDS)
def test_unpack(kernels, count, p: Packing, type: str) -> None:
    format = FORMATS[type]
    generator = np.random.default_rng(3)
    dtype = np.uint16 if p.word == "ushort" else np.uint32
    words = generator.integers(0, 2 ** (8 * np.dtype(dtype).itemsize), COUNT).astype(dtype)
    words[:2] = [0, np.iinfo(dtype).max]
    words[2:4] = [0x8080 if dtype == np.uint16 else 0x80008000, 0x7F7F]
    out = results(COUNT * len(p.widths), format.size)
    kernel = getattr(kernels, f"unpack_{p.pack}_{type}")
    kernel(out, torch.from_numpy(words.view(np.uint8)).clone(), threads=COUNT)
    got = decoded(out, format).reshape(COUNT, -1).T
    scales = np.array([[p.scale(width)] for width in p.widths])
    normalised = np.maximum(fields(p, words) / scales, -1.0)
    exact = by_colour(p, normalised, srgb_to_linear)
    allowed = np.where(np.isin(normalised, (-1, 0, 1)), 0, 1.5 * format.ulp(exact))
    if p.srgb:
        allowed = np.where(np.isin(normalised, (0, 1)), 0, 16 * format.ulp(exact))
    assert (np.abs(got - exact) <= allowed).all()
    count(got.size)

"""The scalar formats of the Metal Shading Language, computed in numpy: what the tests compare with.

Floating-point values travel as float64, which holds every half, bfloat and float exactly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class FloatFormat:
    """A binary format of ``digits`` significant bits, its finite values below 2**max_exponent."""

    name: str
    digits: int
    max_exponent: int

    @property
    def largest(self) -> float:
        return float(np.ldexp(2.0 - 2.0 ** (1 - self.digits), self.max_exponent - 1))

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (2 - self.max_exponent)

    @property
    def smallest(self) -> float:
        return 2.0 ** (3 - self.max_exponent - self.digits)

    @property
    def epsilon(self) -> float:
        return 2.0 ** (1 - self.digits)

    def ulp(self, x: np.ndarray) -> np.ndarray:
        """The distance between the format's neighbours of x."""
        exponent = np.frexp(np.where(np.isfinite(x), x, 1.0))[1]
        return np.ldexp(1.0, np.maximum(exponent, 3 - self.max_exponent) - self.digits)

    def round(self, x: object) -> np.ndarray:
        """To nearest, ties to even, with subnormal results and overflow to infinity."""
        x = np.asarray(x, np.float64)
        ulp = self.ulp(x)
        with np.errstate(all="ignore"):
            rounded = np.rint(x / ulp) * ulp
        overflowed = np.abs(rounded) > self.largest
        rounded = np.where(overflowed, np.copysign(np.inf, x), rounded)
        return np.where(np.isfinite(x), np.copysign(rounded, x), x)

    def decode(self, bits: np.ndarray) -> np.ndarray:
        """Values of bit patterns."""
        with np.errstate(invalid="ignore"):  # signalling NaNs
            if self.name == "bfloat":
                return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
            return bits.view(self.storage).astype(np.float64)

    def encode(self, values: object) -> np.ndarray:
        """Bit patterns of values that the format holds."""
        values = np.ascontiguousarray(values, np.float64)
        with np.errstate(all="ignore"):
            if self.name == "bfloat":
                return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            stored = values.astype(self.storage)
        return stored.view(f"u{stored.itemsize}")

    @property
    def storage(self) -> type:
        return {"half": np.float16, "float": np.float32, "bfloat": np.uint16}[self.name]

    @property
    def size(self) -> int:
        return np.dtype(self.storage).itemsize

    def every_value(self) -> np.ndarray:
        """All values of a 16-bit format, NaNs included."""
        return self.decode(np.arange(2**16, dtype=np.uint16))


@dataclass(frozen=True)
class IntegerFormat:
    """A two's complement or unsigned integer type. Values are Python's unbounded ints."""

    name: str
    width: int
    signed: bool

    @property
    def low(self) -> int:
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return self.low + (1 << self.width) - 1

    @property
    def size(self) -> int:
        return max(self.width // 8, 1)

    @property
    def storage(self) -> np.dtype:
        if self.name == "bool":
            return np.dtype(np.uint8)
        return np.dtype(f"{'i' if self.signed else 'u'}{self.size}")

    def bits(self, x: int) -> int:
        return x & ((1 << self.width) - 1)

    def wrapped(self, x: int) -> int:
        return (x - self.low) % (1 << self.width) + self.low

    def clamped(self, x: int) -> int:
        return max(self.low, min(self.high, x))


HALF = FloatFormat("half", 11, 16)
BFLOAT = FloatFormat("bfloat", 8, 128)
FLOAT = FloatFormat("float", 24, 128)
FLOATS = {f.name: f for f in (HALF, BFLOAT, FLOAT)}
INTEGERS = {
    name: IntegerFormat(name, width, signed)
    for name, width, signed in [
        ("char", 8, True), ("uchar", 8, False), ("short", 16, True), ("ushort", 16, False),
        ("int", 32, True), ("uint", 32, False), ("long", 64, True), ("ulong", 64, False),
    ]
}  # fmt: skip
BOOL = IntegerFormat("bool", 1, False)
SCALARS: dict[str, FloatFormat | IntegerFormat] = {"bool": BOOL, **INTEGERS, **FLOATS}

_TYPE = re.compile(r"(?P<packed>packed_)?(?P<scalar>[a-z]+)(?P<n>[234])?(?:x(?P<m>[234]))?")


@dataclass(frozen=True)
class Layout:
    """Where a scalar, vector, packed vector or matrix type has its components."""

    scalar: FloatFormat | IntegerFormat
    shape: tuple[int, ...]  # (): scalar, (N,): vector, (columns, rows): matrix
    size: int
    alignment: int

    @classmethod
    def of(cls, name: str) -> Layout:
        """Tables 2.2 to 2.5: a vector is as large as it is aligned, a 3-vector like a 4-vector."""
        match = _TYPE.fullmatch(name)
        if match is None or match["scalar"] not in SCALARS:
            raise ValueError(f"{name} is no built-in type")
        scalar = SCALARS[match["scalar"]]
        counts = tuple(int(match[group]) for group in ("n", "m") if match[group])
        if not counts:
            return cls(scalar, (), scalar.size, scalar.size)
        if match["packed"]:
            return cls(scalar, counts, counts[0] * scalar.size, scalar.size)
        column = {2: 2, 3: 4, 4: 4}[counts[-1]] * scalar.size
        size = column * counts[0] if len(counts) == 2 else column
        return cls(scalar, counts, size, column)

    def decode(self, data: np.ndarray) -> np.ndarray:
        """Values of ``size`` bytes, shaped as the type is; floats as float64."""
        rows = data.reshape(self.shape[0] if len(self.shape) == 2 else 1, -1)
        used = (self.shape[-1] if self.shape else 1) * self.scalar.size
        stored = np.ascontiguousarray(rows[:, :used]).view(self.scalar.storage)
        if isinstance(self.scalar, FloatFormat):
            stored = self.scalar.decode(stored.view(f"u{self.scalar.size}"))
        return stored.reshape(self.shape)


def same(values: object, expected: object) -> np.ndarray:
    """Where values are equal: zeros by sign, and any NaN to any other."""
    values, expected = np.asarray(values), np.asarray(expected)
    if values.dtype.kind != "f" and expected.dtype.kind != "f":
        return values == expected
    values, expected = values.astype(np.float64), expected.astype(np.float64)
    nan = np.isnan(values) & np.isnan(expected)
    return nan | ((values == expected) & (np.signbit(values) == np.signbit(expected)))

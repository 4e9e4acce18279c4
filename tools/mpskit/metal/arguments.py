"""Kernel arguments: Python values to the bytes and addresses that a kernel's buffers take.

The rules are those of ``torch.mps.compile_shader``: a tensor gives its storage from its offset
on, an int is sent as int64 and a float as float32 unless ``arg_casts`` says otherwise, a tuple or
list is an array of these. ``bytes`` are sent as they are, for parameter structs. Beyond those
rules, a tuple or list that holds tensors is a struct of pointers to them and of the numbers beside
them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpskit.metal.errors import LaunchError

if TYPE_CHECKING:
    import torch

ArgCasts = str | dict[int, str] | None
Extent = int | Sequence[int] | None

# struct codes; bf16 is packed as the upper half of a float32.
_CASTS = {
    "fp16": "e",
    "bf16": "bf16",
    "int32": "i",
    "int16": "h",
    "int8": "b",
    "uint8": "B",
}
_FLOATING = {"e", "f", "bf16"}
_POINTER = struct.Struct("<Q")


@dataclass(frozen=True)
class Packed:
    """A value that is no tensor, as the kernel will see it."""

    data: bytes
    item_size: int
    floating: bool | None  # None: bytes, whose type only the caller knows
    pointees: tuple[torch.Tensor, ...] = ()  # whose addresses are among the data

    @property
    def type_name(self) -> str:
        """The type sent, for messages."""
        if self.floating is None:
            return f"{len(self.data)} bytes"
        return f"{'float' if self.floating else 'int'}{8 * self.item_size}"


def pack(value: object, position: int, arg_casts: ArgCasts) -> Packed:
    """Packs a scalar, a tuple or bytes.

    Args:
        value: an int, float, bool, bytes, or a non-empty list or tuple of ints, floats or tensors.
        position: its place among the call's arguments.
        arg_casts: one cast for all, or casts by position: fp16, bf16, int32, int16, int8, uint8.
    """
    if isinstance(value, (bytes, bytearray)):
        return Packed(bytes(value), 1, None)
    values: list[Any] = list(value) if isinstance(value, (tuple, list)) else [value]
    if not values:
        raise LaunchError(f"Argument {position} is an empty sequence; a kernel needs an element.")
    cast = arg_casts.get(position, "") if isinstance(arg_casts, dict) else arg_casts or ""
    if cast and cast not in _CASTS:
        raise LaunchError(
            f"Argument {position}: there is no cast {cast!r}.",
            hint=f"Use one of {', '.join(_CASTS)}.",
        )
    if any(map(_is_tensor, values)):
        return _struct(values, cast, position)
    if all(isinstance(v, int) for v in values):
        code = _CASTS.get(cast, "q")
    elif all(isinstance(v, (int, float)) for v in values):
        code = _CASTS.get(cast, "f")
    else:
        kinds = ", ".join(sorted({type(v).__name__ for v in values}))
        raise LaunchError(
            f"Argument {position} is of type {kinds}; a kernel takes tensors, ints, floats, bytes "
            "and tuples of ints or floats."
        )
    return _encode(values, code, position)


def _is_tensor(value: object) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _struct(members: list[Any], cast: str, position: int) -> Packed:
    """Laid out as in C: each member at a multiple of its size, the whole one of a pointer's.

    A cast is for the members of its kind, ints or floats.
    """
    data = b""
    for member in members:
        if _is_tensor(member):
            part = _POINTER.pack(member.data_ptr())
        else:
            fits = cast and isinstance(member, float) == (_CASTS[cast] in _FLOATING)
            part = pack(member, position, cast if fits else None).data
        data += bytes(-len(data) % len(part)) + part
    data += bytes(-len(data) % _POINTER.size)
    return Packed(data, _POINTER.size, None, tuple(filter(_is_tensor, members)))


def _encode(values: list[int | float], code: str, position: int) -> Packed:
    try:
        if code == "bf16":
            data = b"".join(_bfloat(float(v)) for v in values)
        elif code in _FLOATING:
            data = struct.pack(f"<{len(values)}{code}", *map(float, values))
        else:
            data = struct.pack(f"<{len(values)}{code}", *(_wrap(int(v), code) for v in values))
    except (struct.error, OverflowError) as error:
        raise LaunchError(f"Argument {position}: {values} cannot be sent: {error}.") from None
    return Packed(data, len(data) // len(values), code in _FLOATING)


def _wrap(value: int, code: str) -> int:
    """What a C cast makes of an int that its type cannot hold."""
    bits = 8 * struct.calcsize(code)
    value &= (1 << bits) - 1
    return value - (1 << bits) if code.islower() and value >> (bits - 1) else value


def _bfloat(value: float) -> bytes:
    """Rounds to nearest even, as c10::BFloat16 does."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if value != value:
        return struct.pack("<H", 0x7FC0)
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def extent(value: Extent, what: str) -> tuple[int, ...] | None:
    """A grid or threadgroup size as one to three ints."""
    if value is None:
        return None
    sizes = (value,) if isinstance(value, int) else tuple(int(v) for v in value)
    if not 1 <= len(sizes) <= 3:
        raise LaunchError(f"{what} has {len(sizes)} dimensions; it takes one to three.")
    return sizes

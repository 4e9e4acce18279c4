"""Kernel arguments and sizes as people write them on a command line."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpskit.errors import MpskitError

if TYPE_CHECKING:
    import torch

FORMS = (
    "a number, numbers as 1,2,3, FILL:DTYPE:SHAPE (as zeros:float32:1024 or randn:half:4x8), "
    "a .npy file, or several of these as (…;…) for a struct that points to its tensors"
)
FILLS = ("zeros", "ones", "nan", "empty", "arange", "rand", "randn")
_SEED = 0
# Metal's names where torch has others, and unsigned types that torch only stores.
_METAL_NAMES = {
    "half": "float16",
    "float": "float32",
    "bfloat": "bfloat16",
    "char": "int8",
    "uchar": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "ulong": "uint64",
}
DTYPES = (*_METAL_NAMES.values(), "bool")


def parse_argument(text: str) -> Any:
    """The value that ``text`` stands for: a number, a tensor on the CPU, or a tuple of them.

    ``zeros``, ``ones``, ``nan`` and ``arange`` fill with what they say, ``empty`` with bytes of
    0xFF, ``rand`` and ``randn`` with random numbers that are the same every time.

    Raises:
        MpskitError: it stands for nothing, or a file cannot be read.
    """
    if (number := _number(text)) is not None:
        return number
    if text.startswith("(") and text.endswith(")"):
        return tuple(parse_argument(part) for part in text[1:-1].split(";"))
    if "," in text and ":" not in text:
        numbers = [number for part in text.split(",") if (number := _number(part)) is not None]
        if len(numbers) == text.count(",") + 1:
            return tuple(numbers)
    if text.endswith(".npy"):
        return _load(Path(text))
    fill, _, rest = text.partition(":")
    name, _, shape = rest.partition(":")
    if not shape:
        raise MpskitError(f"{text!r} is no kernel argument.", hint=f"Write {FORMS}.")
    return _filled(fill, _dtype(name, text), parse_size(shape))


def parse_size(text: str) -> tuple[int, ...]:
    """A shape or grid: ``1024``, ``4x8``, ``4,8``."""
    try:
        sizes = tuple(int(part) for part in text.replace(",", "x").split("x"))
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 0:
        raise MpskitError(f"{text!r} is no size.", hint="Write 1024, or 4x8, or 4x8x2.")
    return sizes


def _number(text: str) -> int | float | None:
    for read in (lambda: int(text, 0), lambda: float(text)):
        try:
            return read()
        except ValueError:
            pass
    return {"true": 1, "false": 0}.get(text)


def _dtype(name: str, text: str) -> torch.dtype:
    import torch

    name = _METAL_NAMES.get(name, name)
    if name not in DTYPES:
        raise MpskitError(
            f"{text!r}: there is no dtype {name!r}.", hint=f"Use one of {', '.join(DTYPES)}."
        )
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def _filled(fill: str, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    import torch

    generator = torch.Generator().manual_seed(_SEED)
    fills: dict[str, Callable[[], torch.Tensor]] = {
        "zeros": lambda: torch.zeros(shape, dtype=dtype),
        "ones": lambda: torch.ones(shape, dtype=dtype),
        "nan": lambda: torch.full(shape, math.nan).to(dtype),
        "empty": lambda: torch.full(
            (*shape, dtype.itemsize), 0xFF, dtype=torch.uint8
        ).view(dtype).reshape(shape),
        "arange": lambda: torch.arange(math.prod(shape)).to(dtype).reshape(shape),
        "rand": lambda: torch.rand(shape, generator=generator).to(dtype),
        "randn": lambda: torch.randn(shape, generator=generator).to(dtype),
    }  # fmt: skip
    if fill not in fills:
        raise MpskitError(
            f"There is no way {fill!r} to fill a tensor.", hint=f"Use one of {', '.join(FILLS)}."
        )
    return fills[fill]()


def _load(file: Path) -> torch.Tensor:
    import numpy
    import torch

    try:
        array = numpy.load(file, allow_pickle=False)
        return torch.from_numpy(numpy.ascontiguousarray(array))
    except (OSError, ValueError, TypeError) as error:
        raise MpskitError(f"{file} cannot be read as a tensor: {error}.") from None


def save(file: Path, tensor: torch.Tensor) -> None:
    """Writes a tensor as ``.npy``; bfloat16, which numpy lacks, as float32."""
    import numpy
    import torch

    if tensor.dtype is torch.bfloat16:
        tensor = tensor.float()
    try:
        with file.open("wb") as stream:
            numpy.save(stream, tensor.numpy())
    except OSError as error:
        raise MpskitError(f"{file} cannot be written: {error}.") from None

"""What is measured: shapes, dtypes and layouts, from a TOML file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import torch

from mpskit.errors import MpskitError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BUILT_IN = Path(__file__).with_name("workloads.toml")
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
LAYOUTS = {
    "contiguous": torch.contiguous_format,
    "channels_last": torch.channels_last,
}
# Below this a tensor may stay in a GPU's cache between runs.
MEMORY_BOUND_BYTES = 100_000_000


@dataclass(frozen=True)
class Workload:
    """One call of the op.

    ``published`` are microseconds on a Mac's GPU before and after the change upstream, where its
    pull request gives them.
    """

    shape: tuple[int, ...]
    dim: int
    dtype: str
    layout: str = "contiguous"
    model: str | None = None
    published: tuple[float, float] | None = None
    shape_source: str | None = None

    @property
    def numel(self) -> int:
        """Elements of the input, and of the output."""
        return prod(self.shape)

    @property
    def tensor_bytes(self) -> int:
        """Bytes of the input, and of the output."""
        return self.numel * DTYPES[self.dtype].itemsize

    @property
    def is_memory_bound(self) -> bool:
        return self.tensor_bytes >= MEMORY_BOUND_BYTES

    @property
    def name(self) -> str:
        """For people: ``8x150x128x128 dim 1 float32 channels_last``."""
        name = f"{'x'.join(map(str, self.shape))} dim {self.dim} {self.dtype}"
        return name if self.layout == "contiguous" else f"{name} {self.layout}"

    def make_input(self, device: str) -> torch.Tensor:
        """Normal random values in this workload's layout."""
        x = torch.randn(self.shape, device=device, dtype=DTYPES[self.dtype])
        return x.contiguous(memory_format=LAYOUTS[self.layout])


def load_workloads(path: Path | None = None) -> list[Workload]:
    """Reads a workloads file, the built-in one by default.

    Raises:
        MpskitError: names the file, the entry and the key that is wrong.
    """
    file = path or BUILT_IN
    try:
        data = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MpskitError(
            f"{file} is no readable TOML: {error}.", hint=f"See {BUILT_IN} for the format."
        ) from None
    entries = data.get("workload", [])
    if not isinstance(entries, list) or not entries:
        raise MpskitError(f"{file} has no [[workload]].", hint=f"See {BUILT_IN} for the format.")
    return [_workload(entry, f"{file}, workload {i}") for i, entry in enumerate(entries, 1)]


def select(
    workloads: Sequence[Workload], *, dtype: str | None = None, text: str | None = None
) -> list[Workload]:
    """Those whose name or model contains ``text``, all in ``dtype`` where one is given.

    Raises:
        MpskitError: none is left.
    """
    chosen = [replace(w, dtype=dtype) if dtype else w for w in workloads]
    chosen = [w for w in chosen if not text or text in f"{w.name} {w.model}"]
    if not chosen:
        raise MpskitError(
            f"No workload's name contains {text!r}.",
            hint=f"The names begin with shapes, e.g. {workloads[0].name!r}.",
        )
    return list(dict.fromkeys(chosen))


def _workload(entry: dict[str, Any], where: str) -> Workload:
    def check(is_right: bool, what: str) -> None:
        if not is_right:
            raise MpskitError(f"{where}: {what}.", hint=f"See {BUILT_IN} for the format.")

    known = {"shape", "dim", "dtype", "layout", "model", "published", "shape_source"}
    check(not set(entry) - known, f"there is no key {', '.join(sorted(set(entry) - known))}")
    shape = entry.get("shape")
    check(isinstance(shape, list) and _are(int, shape) and min(shape, default=0) > 0,
          "shape must be a list of sizes")  # fmt: skip
    assert isinstance(shape, list)
    dim = entry.get("dim", -1)
    check(isinstance(dim, int) and -len(shape) <= dim < len(shape), "dim is not one of the shape's")
    check(entry.get("dtype") in DTYPES, f"dtype must be one of {', '.join(DTYPES)}")
    layout = entry.get("layout", "contiguous")
    check(layout in LAYOUTS, f"layout must be one of {', '.join(LAYOUTS)}")
    check(layout == "contiguous" or len(shape) == 4, f"{layout} needs four dimensions")
    published = entry.get("published")
    check(published is None or (_are((int, float), published) and len(published) == 2),
          "published must be two numbers, microseconds before and after")  # fmt: skip
    return Workload(
        shape=tuple(shape),
        dim=dim,
        dtype=entry["dtype"],
        layout=layout,
        model=entry.get("model"),
        published=tuple(published) if published else None,
        shape_source=entry.get("shape_source"),
    )


def _are(kind: type | tuple[type, ...], values: Iterable[object]) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)

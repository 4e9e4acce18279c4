"""The mps backend: torch's own compiler and launcher on a Mac's GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from mpskit.errors import MpskitError
from mpskit.metal.arguments import ArgCasts, Extent
from mpskit.metal.errors import LaunchError


class Kernel:
    """A kernel of `torch.mps.compile_shader` that takes ``bytes`` too, for parameter structs."""

    def __init__(self, kernel: Any, name: str) -> None:
        self._kernel = kernel
        self.name = name

    @property
    def max_threads_per_threadgroup(self) -> int:
        """What this device's pipeline state for the kernel allows."""
        return int(self._kernel.max_threads_per_threadgroup)

    @property
    def thread_execution_width(self) -> int:
        """Threads of a simdgroup."""
        return int(self._kernel.thread_execution_width)

    def __call__(
        self,
        *args: Any,
        threads: Extent = None,
        group_size: Extent = None,
        arg_casts: ArgCasts = None,
    ) -> None:
        """As `mpskit.metal.launching.Kernel`; returns when the kernel is in the stream."""
        if any(isinstance(arg, (tuple, list)) and _has_tensors(arg) for arg in args):
            raise LaunchError(
                f"{self.name}: torch.mps sends no structs with pointers to tensors.",
                hint="Run the kernel with backend='cpu' or 'cuda', or pass each tensor by itself.",
            )
        raw = {i: "uint8" for i, arg in enumerate(args) if isinstance(arg, bytes)}
        if raw:
            if isinstance(arg_casts, str):
                arg_casts = dict.fromkeys(range(len(args)), arg_casts)
            arg_casts = {**(arg_casts or {}), **raw}
        self._kernel(
            *(tuple(arg) if isinstance(arg, bytes) else arg for arg in args),
            threads=threads,
            group_size=group_size,
            arg_casts=arg_casts,
        )


def _has_tensors(values: Sequence[Any]) -> bool:
    return any(isinstance(value, torch.Tensor) for value in values)


class Library:
    """The kernels of one Metal source; each is an attribute under its host name."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Kernel:
        return Kernel(getattr(self.__dict__["_library"], name), name)

    def __dir__(self) -> list[str]:
        return sorted(dir(self._library))


def compile_library(embedded: str) -> Library:
    """Compiles a Metal source whose includes are embedded, for this Mac's GPU."""
    if not torch.backends.mps.is_available():
        raise MpskitError(
            "The mps backend needs a Mac with a GPU that torch can use.",
            hint="Use backend='cpu' here; it runs the same source.",
        )
    return Library(torch.mps.compile_shader(embedded))

"""Launching a compiled kernel: what is checked, and said, alike on every backend."""

from __future__ import annotations

import ctypes
import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from mpskit.metal.arguments import ArgCasts, Extent, Packed, extent, pack
from mpskit.metal.errors import Diagnostic, LaunchError

if TYPE_CHECKING:
    import torch

SIMD_WIDTH = 32
_MAX_THREADGROUP_ARGUMENTS = 31

Size3 = tuple[int, int, int]


class ScalarKind(IntEnum):
    """abi::ScalarKind."""

    OTHER = 0
    BOOLEAN = 1
    SIGNED_INTEGER = 2
    UNSIGNED_INTEGER = 3
    FLOATING = 4


class Pointee(ctypes.Structure):
    """abi::Pointee."""

    _fields_ = (
        ("size", ctypes.c_uint),
        ("alignment", ctypes.c_uint),
        ("scalar", ctypes.c_uint),
        ("reference", ctypes.c_bool),
        ("constant", ctypes.c_bool),
    )


@dataclass(frozen=True)
class BufferParameter:
    """What the compiled kernel says of one of its buffers; sizes in bytes."""

    name: str
    index: int
    size: int
    scalar: ScalarKind
    reference: bool
    writable: bool

    @classmethod
    def of(cls, name: str, index: int, pointee: Pointee) -> BufferParameter:
        """From what the library's table holds."""
        return cls(
            name,
            index,
            pointee.size,
            ScalarKind(pointee.scalar),
            pointee.reference,
            not pointee.constant,
        )


@dataclass(frozen=True)
class Dispatch:
    """A checked launch: the grid and the threadgroup in threads, dynamic memory in bytes."""

    threads: Size3
    group_size: Size3
    threadgroup_lengths: Sequence[int]  # of [[threadgroup(0)]], 1, …
    timeout: float | None = None  # seconds


class Kernel(ABC):
    """A kernel that can be called, as ``torch.mps``'s are.

    ``kernel(*args, threads=None, group_size=None, arg_casts=None)``: arguments go to buffers 0,
    1, …. ``threads`` is the grid in threads, by default as many as the first tensor has elements;
    ``group_size`` the threadgroup, by default as wide as the grid and the kernel allow.
    """

    device_type: ClassVar[str]
    """Of the tensors that it takes, and the name of the backend."""
    can_be_stopped: ClassVar[bool] = False
    """Whether a launch can be given a time limit."""
    thread_execution_width = SIMD_WIDTH

    def __init__(
        self,
        name: str,
        max_threads: int,
        buffers: Iterable[BufferParameter],
        threadgroup_buffers: Mapping[int, str],
    ) -> None:
        """
        Args:
            name: the host name.
            max_threads: of a threadgroup.
            buffers: in any order.
            threadgroup_buffers: names of the ``[[threadgroup(n)]]`` arguments, by n.
        """
        self.name = name
        self.max_threads_per_threadgroup = max_threads
        self.buffers = tuple(sorted(buffers, key=lambda p: p.index))
        self._buffers_by_index = {p.index: p for p in self.buffers}
        self._threadgroup_buffers = dict(threadgroup_buffers)

    def __repr__(self) -> str:
        return f"<Metal kernel {self.name}({', '.join(p.name for p in self.buffers)})>"

    def __call__(
        self,
        *args: Any,
        threads: Extent = None,
        group_size: Extent = None,
        arg_casts: ArgCasts = None,
        threadgroup_lengths: Mapping[int, int] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Runs the kernel: to its end on the cpu, in torch's current stream on a GPU.

        Args:
            args: tensors on the backend's device, ints, floats, bytes, tuples or lists; one for
                each buffer. A tuple with tensors in it is a struct that points to them.
            threads: grid in threads, one to three dimensions.
            group_size: threadgroup in threads, as many dimensions as ``threads``.
            arg_casts: what ints and floats are sent as; see `mpskit.metal.arguments`.
            threadgroup_lengths: bytes of each ``[[threadgroup(n)]]`` argument, by n.
            timeout: seconds after which the kernel is stopped, on the cpu backend.

        Raises:
            LaunchError: before anything runs, or when the kernel runs out of threadgroup memory.
            KernelFaultError: on the cpu, a thread did what would have ended the process.
            KernelTimeoutError: the kernel was stopped.
            SanitizerError: the library was compiled with ``sanitize=True`` and has reports.
        """
        import torch

        grid = extent(threads, "threads")
        arguments: list[torch.Tensor | Packed] = []
        for position, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                self._check_device(position, value)
                grid = grid or (value.numel(),)
                arguments.append(value)
            else:
                packed = pack(value, position, arg_casts)
                for pointee in packed.pointees:
                    self._check_device(position, pointee)
                if parameter := self._buffers_by_index.get(position):
                    self._check_scalar(position, packed, parameter)
                arguments.append(packed)
        self._check_count(len(args))
        self._check_timeout(timeout)
        sizes = self._sizes(grid, extent(group_size, "group_size"))
        if sizes:
            lengths = self._lengths(threadgroup_lengths or {})
            self._launch(arguments, Dispatch(*sizes, lengths, timeout))

    @abstractmethod
    def _launch(self, arguments: Sequence[torch.Tensor | Packed], dispatch: Dispatch) -> None:
        """Launches what has been checked; there are at least as many arguments as buffers."""

    def _check_device(self, position: int, tensor: torch.Tensor) -> None:
        if tensor.device.type != self.device_type:
            raise LaunchError(
                f"{self.name}: argument {position} is on {tensor.device}.",
                hint=f"The {self.device_type} backend takes {self.device_type.upper()} tensors; "
                f"call .{self.device_type}() on it.",
            )

    def _check_timeout(self, timeout: float | None) -> None:
        if timeout is None:
            return
        if not self.can_be_stopped:
            raise LaunchError(
                f"{self.name}: a kernel of the {self.device_type} backend cannot be stopped.",
                hint="Leave timeout= out, or run the kernel with backend='cpu'.",
            )
        if timeout <= 0:
            raise LaunchError(f"{self.name}: a time limit of {timeout} seconds.")

    def _check_count(self, count: int) -> None:
        missing = [p for p in self.buffers if p.index >= count]
        if missing:
            names = ", ".join(f"{p.index} ('{p.name}')" for p in missing)
            raise LaunchError(
                f"{self.name} was called with {count} arguments; nothing was given for buffer "
                f"{names}."
            )

    def _check_scalar(self, position: int, sent: Packed, parameter: BufferParameter) -> None:
        """Refuses what a Mac would silently misread: too few bytes, or the other kind of number."""
        wrong = parameter.reference and len(sent.data) < parameter.size
        if sent.floating is not None and parameter.scalar in (
            ScalarKind.SIGNED_INTEGER,
            ScalarKind.UNSIGNED_INTEGER,
        ):
            wrong = wrong or sent.floating
        elif sent.floating is not None and parameter.scalar == ScalarKind.FLOATING:
            wrong = wrong or not sent.floating
            wrong = wrong or (parameter.size <= 8 and sent.item_size > parameter.size)
        if wrong:
            kind = {
                ScalarKind.FLOATING: "floating point",
                ScalarKind.BOOLEAN: "bool",
                ScalarKind.OTHER: "a struct",
            }.get(parameter.scalar, "integer")
            raise LaunchError(
                f"{self.name}: argument {position} ('{parameter.name}') is sent as "
                f"{sent.type_name}, the kernel reads {kind} of {parameter.size} bytes.",
                hint=f"Send the right type: arg_casts={{{position}: 'int32'}}, a float such as "
                "3.0 instead of 3, or bytes for a struct.",
            )

    def _sizes(
        self, grid: tuple[int, ...] | None, group: tuple[int, ...] | None
    ) -> tuple[Size3, Size3] | None:
        """The grid and the threadgroup in three dimensions; None where there is nothing to run."""
        if grid is None:
            raise LaunchError(
                f"{self.name}: the number of threads is not known.",
                hint="Pass threads=, or a tensor among the arguments.",
            )
        group = group or (min(grid[0], self.max_threads_per_threadgroup), *(1,) * (len(grid) - 1))
        if len(group) != len(grid):
            raise LaunchError(
                f"{self.name}: threads has {len(grid)} dimensions and group_size {len(group)}."
            )
        if min(grid) < 0 or max(grid) >= 2**32:
            raise LaunchError(f"{self.name}: a grid of {grid} threads; each must fit 32 bits.")
        if prod(grid) == 0:
            return None
        if min(group) < 1 or prod(group) > self.max_threads_per_threadgroup:
            raise LaunchError(
                f"{self.name}: a threadgroup of {' x '.join(map(str, group))} threads.",
                hint=f"It takes 1 to {self.max_threads_per_threadgroup} threads.",
            )
        return _in_three_dimensions(grid), _in_three_dimensions(group)

    def _lengths(self, given: Mapping[int, int]) -> list[int]:
        missing = set(self._threadgroup_buffers) - set(given)
        if missing:
            index = min(missing)
            raise LaunchError(
                f"{self.name}: the size of threadgroup argument {index} "
                f"('{self._threadgroup_buffers[index]}') is not known.",
                hint=f"Pass threadgroup_lengths={{{index}: bytes}}.",
            )
        if max(given, default=0) >= _MAX_THREADGROUP_ARGUMENTS:
            raise LaunchError(
                f"{self.name}: there is no threadgroup argument {max(given)}.",
                hint=f"A kernel has at most {_MAX_THREADGROUP_ARGUMENTS} of them, from 0.",
            )
        return [given.get(i, 0) for i in range(max(given, default=-1) + 1)]


def _in_three_dimensions(sizes: tuple[int, ...]) -> Size3:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


class Library:
    """The kernels of one Metal source; each is an attribute under its host name."""

    diagnostics: Sequence[Diagnostic] = ()
    """What the lint warns of in the source."""

    def __init__(self, kernels: Iterable[Kernel]) -> None:
        self._kernels = {kernel.name: kernel for kernel in kernels}

    def __getattr__(self, name: str) -> Kernel:
        try:
            return self.__dict__["_kernels"][name]  # type: ignore[no-any-return]
        except KeyError:
            pass
        close = difflib.get_close_matches(name, self.__dict__.get("_kernels", ()), n=3)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise AttributeError(f"The library has no kernel {name!r}.{hint}")

    def __dir__(self) -> list[str]:
        return sorted(self._kernels)

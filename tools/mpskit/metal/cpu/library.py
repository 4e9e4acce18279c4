"""Kernel libraries on the cpu: compile, load, launch."""

from __future__ import annotations

import ctypes
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from pathlib import Path
from typing import Any

from mpskit.metal import cache
from mpskit.metal.arguments import ArgCasts, Extent, Packed, extent, pack
from mpskit.metal.cpu import emit
from mpskit.metal.errors import CompileError, LaunchError
from mpskit.metal.frontend.kernels import read_kernels
from mpskit.metal.frontend.preprocess import preprocess, read_diagnostics
from mpskit.metal.frontend.structure import Program
from mpskit.metal.host_compiler import (
    SUFFIX,
    Compiler,
    CompilerFailedError,
    build_shared_library,
    find_compiler,
    machine_flags,
)

_HERE = Path(__file__).parent
_SHIM = _HERE.parent / "shim"
_SIMD_WIDTH = 32
_MESSAGE_BYTES = 4096
# As PyTorch compiles Metal: no fast-math, and no contraction either, so that results do not
# depend on the host's compiler. Kernels reinterpret memory freely, hence no strict aliasing.
_FLAGS = (
    "-std=c++20",
    "-O2",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-strict-aliasing",
    "-fsigned-char",
    "-fno-exceptions",
    "-fno-rtti",
    "-fvisibility=hidden",
    "-nostdinc",
    "-nostdinc++",
    "-w",
)


class _Uint3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


class _Parameter(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_uint),
        ("index", ctypes.c_uint),
        ("size", ctypes.c_uint),
        ("alignment", ctypes.c_uint),
        ("scalar", ctypes.c_uint),
        ("reference", ctypes.c_bool),
        ("constant", ctypes.c_bool),
    )


class _Kernel(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("entry", ctypes.c_void_p),
        ("parameters", ctypes.POINTER(_Parameter)),
        ("parameter_count", ctypes.c_uint),
        ("max_threads", ctypes.c_uint),
    )


class _Dispatch(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.POINTER(_Kernel)),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ("threadgroup_lengths", ctypes.POINTER(ctypes.c_ulong)),
        ("threadgroup_length_count", ctypes.c_uint),
        ("threads", _Uint3),
        ("group_size", _Uint3),
        ("workers", ctypes.c_uint),
    )


# abi::ParameterKind and abi::ScalarKind.
_BUFFER, _THREADGROUP = 0, 1
_BOOLEAN, _INTEGERS, _FLOATING = 1, (2, 3), 4


@dataclass(frozen=True)
class BufferParameter:
    """What the compiled kernel says of one of its buffers; sizes in bytes."""

    name: str
    index: int
    size: int
    scalar: int
    reference: bool
    writable: bool


class Kernel:
    """A kernel that can be called, as ``torch.mps``'s are.

    ``kernel(*args, threads=None, group_size=None, arg_casts=None)``: arguments go to buffers 0,
    1, …. ``threads`` is the grid in threads, by default as many as the first tensor has elements;
    ``group_size`` the threadgroup, by default as wide as the grid and the kernel allow.
    """

    max_threads_per_threadgroup: int
    thread_execution_width = _SIMD_WIDTH

    def __init__(self, record: Any, library: ctypes.CDLL) -> None:
        self._record = record
        self._library = library  # keeps the code loaded
        self.name: str = record.name.decode()
        self.max_threads_per_threadgroup = record.max_threads

    @cached_property
    def buffers(self) -> tuple[BufferParameter, ...]:
        """The kernel's buffer parameters, in order of their index."""
        found = [self._record.parameters[i] for i in range(self._record.parameter_count)]
        return tuple(
            sorted(
                (
                    BufferParameter(
                        p.name.decode(), p.index, p.size, p.scalar, p.reference, not p.constant
                    )
                    for p in found
                    if p.kind == _BUFFER
                ),
                key=lambda p: p.index,
            )
        )

    @cached_property
    def _threadgroup_buffers(self) -> dict[int, str]:
        found = [self._record.parameters[i] for i in range(self._record.parameter_count)]
        return {p.index: p.name.decode() for p in found if p.kind == _THREADGROUP}

    def __repr__(self) -> str:
        return f"<Metal kernel {self.name}({', '.join(p.name for p in self.buffers)})>"

    def __call__(
        self,
        *args: Any,
        threads: Extent = None,
        group_size: Extent = None,
        arg_casts: ArgCasts = None,
        threadgroup_lengths: Mapping[int, int] | None = None,
    ) -> None:
        """Runs the kernel and returns when it has finished.

        Args:
            args: CPU tensors, ints, floats, bytes, tuples or lists; one for each buffer.
            threads: grid in threads, one to three dimensions.
            group_size: threadgroup in threads, as many dimensions as ``threads``.
            arg_casts: what ints and floats are sent as; see `mpskit.metal.arguments`.
            threadgroup_lengths: bytes of each ``[[threadgroup(n)]]`` argument, by n.

        Raises:
            LaunchError: before anything runs, or when the kernel runs out of threadgroup memory.
        """
        import torch

        grid = extent(threads, "threads")
        addresses: list[int] = []
        kept: list[Any] = []  # what the addresses point into
        by_index = {p.index: p for p in self.buffers}
        for position, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                if value.device.type != "cpu":
                    raise LaunchError(
                        f"{self.name}: argument {position} is on {value.device}.",
                        hint="The cpu backend takes CPU tensors; call .cpu() on it.",
                    )
                grid = grid or (value.numel(),)
                addresses.append(value.data_ptr())
            else:
                packed = pack(value, position, arg_casts)
                if parameter := by_index.get(position):
                    self._check_scalar(position, packed, parameter)
                # 16 bytes more, for vectors read beyond the last element of a short array.
                buffer = ctypes.create_string_buffer(packed.data, len(packed.data) + 16)
                kept.append(buffer)
                addresses.append(ctypes.addressof(buffer))
        self._check_arguments(len(args))
        self._launch(addresses, grid, extent(group_size, "group_size"), threadgroup_lengths or {})

    def _check_arguments(self, count: int) -> None:
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
        if sent.floating is not None and parameter.scalar in _INTEGERS:
            wrong = wrong or sent.floating
        elif sent.floating is not None and parameter.scalar == _FLOATING:
            wrong = wrong or not sent.floating
            wrong = wrong or (parameter.size <= 8 and sent.item_size > parameter.size)
        if wrong:
            kind = {_FLOATING: "floating point", _BOOLEAN: "bool"}.get(parameter.scalar, "integer")
            if parameter.scalar == 0:
                kind = "a struct"
            raise LaunchError(
                f"{self.name}: argument {position} ('{parameter.name}') is sent as "
                f"{sent.type_name}, the kernel reads {kind} of {parameter.size} bytes.",
                hint=f"Send the right type: arg_casts={{{position}: 'int32'}}, a float such as "
                "3.0 instead of 3, or bytes for a struct.",
            )

    def _launch(
        self,
        addresses: Sequence[int],
        grid: tuple[int, ...] | None,
        group: tuple[int, ...] | None,
        threadgroup_lengths: Mapping[int, int],
    ) -> None:
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
            return
        if min(group) < 1 or prod(group) > self.max_threads_per_threadgroup:
            raise LaunchError(
                f"{self.name}: a threadgroup of {' x '.join(map(str, group))} threads.",
                hint=f"It takes 1 to {self.max_threads_per_threadgroup} threads.",
            )
        lengths = self._lengths(threadgroup_lengths)
        dispatch = _Dispatch(
            kernel=ctypes.pointer(self._record),
            buffers=(ctypes.c_void_p * max(1, len(addresses)))(*addresses),
            threadgroup_lengths=(ctypes.c_ulong * max(1, len(lengths)))(*lengths),
            threadgroup_length_count=len(lengths),
            threads=_Uint3(*grid, *(1,) * (3 - len(grid))),
            group_size=_Uint3(*group, *(1,) * (3 - len(group))),
            workers=0,
        )
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        if _runtime().mpskit_dispatch(ctypes.byref(dispatch), message, _MESSAGE_BYTES):
            raise LaunchError(f"{self.name}: {message.value.decode()}.")

    def _lengths(self, given: Mapping[int, int]) -> list[int]:
        missing = set(self._threadgroup_buffers) - set(given)
        if missing:
            index = min(missing)
            raise LaunchError(
                f"{self.name}: the size of threadgroup argument {index} "
                f"('{self._threadgroup_buffers[index]}') is not known.",
                hint=f"Pass threadgroup_lengths={{{index}: bytes}}.",
            )
        return [given.get(i, 0) for i in range(max(given, default=-1) + 1)]


class Library:
    """The kernels of one Metal source; each is an attribute under its host name."""

    def __init__(self, file: Path) -> None:
        self._library = ctypes.CDLL(str(file))
        bind = getattr(self._library, emit.BIND_SYMBOL)
        bind.argtypes, bind.restype = [ctypes.c_void_p], None
        bind(_runtime().mpskit_runtime())
        table = getattr(self._library, emit.TABLE_SYMBOL)
        table.restype = ctypes.POINTER(_Kernel)
        self._kernels: dict[str, Kernel] = {}
        records = table()
        index = 0
        while records[index].name:
            kernel = Kernel(records[index], self._library)
            self._kernels[kernel.name] = kernel
            index += 1

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


@lru_cache(maxsize=1)
def _runtime() -> ctypes.CDLL:
    file = build_shared_library(
        (_HERE / "runtime.cpp").read_text(),
        name="runtime",
        include_dirs=[_HERE],
        flags=["-pthread", "-fvisibility=hidden"],
        depends=[_HERE / "abi.h"],
    )
    runtime = ctypes.CDLL(str(file))
    runtime.mpskit_runtime.restype = ctypes.c_void_p
    runtime.mpskit_dispatch.argtypes = [
        ctypes.POINTER(_Dispatch),
        ctypes.c_char_p,
        ctypes.c_ulong,
    ]
    return runtime


def compile_library(embedded: str, *, metal_version: int) -> Library:
    """Compiles a Metal source whose includes are embedded, or takes it from the cache."""
    compiler = find_compiler()
    flags = (*machine_flags(compiler), *_FLAGS)
    parts = [embedded, str(metal_version), *compiler.command, compiler.version, *flags]

    def build(file: Path) -> None:
        source = preprocess(embedded, compiler, metal_version=metal_version)
        program = Program(source)
        unit = file.with_suffix(".cpp")
        unit.write_text(emit.translation_unit(program, read_kernels(program)))
        _compile(compiler, flags, unit, file)

    return Library(cache.entry(f"metal-{cache.key([*parts, _own_digest()])}{SUFFIX}", build))


def _compile(compiler: Compiler, flags: Sequence[str], unit: Path, file: Path) -> None:
    try:
        compiler.run([*flags, f"-I{_SHIM}", f"-I{_HERE}", unit, "-o", file])
    except CompilerFailedError as error:
        diagnostics = read_diagnostics(error.output)
        ours = (str(_SHIM), str(_HERE), "mpskit entry points")
        theirs = [d for d in diagnostics if not d.location.file.startswith(ours)]
        if not theirs:
            raise
        raise CompileError(theirs) from None


@lru_cache(maxsize=1)
def _own_digest() -> str:
    """What this package adds to every kernel library, as one hash."""
    package = _HERE.parent
    files = [*package.rglob("*.h"), *package.rglob("*.py")]
    return cache.key(part for f in sorted(files) for part in (f.name, f.read_bytes()))

"""Kernel libraries on the cpu: compile, load, launch."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpskit.metal import cache
from mpskit.metal.arguments import Packed
from mpskit.metal.codegen.translate import (
    INCLUDE_DIRS,
    THREAD_HEADER,
    package_digest,
    raise_users_errors,
    translate,
)
from mpskit.metal.cpu import emit
from mpskit.metal.errors import LaunchError
from mpskit.metal.frontend.preprocess import read_diagnostics
from mpskit.metal.host_compiler import (
    SUFFIX,
    Compiler,
    CompilerFailedError,
    build_shared_library,
    find_compiler,
    machine_flags,
)
from mpskit.metal.launching import BufferParameter, Dispatch, Kernel, Library, Pointee

if TYPE_CHECKING:
    import torch

_HERE = Path(__file__).parent
_INCLUDE_DIRS = (*INCLUDE_DIRS, _HERE)
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
        ("pointee", Pointee),
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


# abi::ParameterKind.
_BUFFER, _THREADGROUP = 0, 1


class CpuKernel(Kernel):
    """A kernel as machine code of this process."""

    device_type = "cpu"

    def __init__(self, record: Any, library: ctypes.CDLL) -> None:
        self._record = record
        self._library = library  # keeps the code loaded
        parameters = [record.parameters[i] for i in range(record.parameter_count)]
        super().__init__(
            record.name.decode(),
            record.max_threads,
            (
                BufferParameter.of(p.name.decode(), p.index, p.pointee)
                for p in parameters
                if p.kind == _BUFFER
            ),
            {p.index: p.name.decode() for p in parameters if p.kind == _THREADGROUP},
        )

    def _launch(self, arguments: Sequence[torch.Tensor | Packed], dispatch: Dispatch) -> None:
        addresses: list[int] = []
        kept: list[Any] = []  # what the addresses point into
        for argument in arguments:
            if isinstance(argument, Packed):
                # 16 bytes more, for vectors read beyond the last element of a short array.
                buffer = ctypes.create_string_buffer(argument.data, len(argument.data) + 16)
                kept.append(buffer)
                addresses.append(ctypes.addressof(buffer))
            else:
                addresses.append(argument.data_ptr())
        lengths = dispatch.threadgroup_lengths
        record = _Dispatch(
            kernel=ctypes.pointer(self._record),
            buffers=(ctypes.c_void_p * max(1, len(addresses)))(*addresses),
            threadgroup_lengths=(ctypes.c_ulong * max(1, len(lengths)))(*lengths),
            threadgroup_length_count=len(lengths),
            threads=_Uint3(*dispatch.threads),
            group_size=_Uint3(*dispatch.group_size),
            workers=0,
        )
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        if _runtime().mpskit_dispatch(ctypes.byref(record), message, _MESSAGE_BYTES):
            raise LaunchError(f"{self.name}: {message.value.decode()}.")


def _load(file: Path) -> Library:
    library = ctypes.CDLL(str(file))
    bind = getattr(library, emit.BIND_SYMBOL)
    bind.argtypes, bind.restype = [ctypes.c_void_p], None
    bind(_runtime().mpskit_runtime())
    table = getattr(library, emit.TABLE_SYMBOL)
    table.restype = ctypes.POINTER(_Kernel)
    return Library(CpuKernel(record, library) for record in _records(table()))


def _records(table: Any) -> Iterator[Any]:
    index = 0
    while table[index].name:
        yield table[index]
        index += 1


@lru_cache(maxsize=1)
def _runtime() -> ctypes.CDLL:
    file = build_shared_library(
        (_HERE / "runtime.cpp").read_text(),
        name="runtime",
        include_dirs=_INCLUDE_DIRS,
        flags=["-pthread", "-fvisibility=hidden"],
        depends=[_HERE / "abi.h", THREAD_HEADER],
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
        unit = file.with_suffix(".cpp")
        unit.write_text(
            translate(embedded, compiler, emit.translation_unit, metal_version=metal_version)
        )
        _compile(compiler, flags, unit, file)

    return _load(cache.entry(f"metal-{cache.key([*parts, package_digest()])}{SUFFIX}", build))


def _compile(compiler: Compiler, flags: Sequence[str], unit: Path, file: Path) -> None:
    try:
        compiler.run([*flags, *(f"-I{folder}" for folder in _INCLUDE_DIRS), unit, "-o", file])
    except CompilerFailedError as error:
        raise_users_errors(read_diagnostics(error.output))
        raise

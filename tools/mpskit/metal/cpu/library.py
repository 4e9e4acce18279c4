"""Kernel libraries on the cpu: compile, load, launch."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpskit import interrupts
from mpskit.metal import cache
from mpskit.metal.arguments import Packed
from mpskit.metal.codegen.diagnostics import message_flags, read_messages
from mpskit.metal.codegen.translate import (
    INCLUDE_DIRS,
    THREAD_HEADER,
    is_ours,
    package_digest,
    raise_users_errors,
    translate,
)
from mpskit.metal.cpu import emit
from mpskit.metal.cpu.structures import (
    Buffer,
    DispatchRecord,
    Failure,
    Interpreter,
    KernelRecord,
    Outcome,
    ParameterKind,
)
from mpskit.metal.errors import KernelFaultError, KernelTimeoutError, LaunchError
from mpskit.metal.host_compiler import (
    SUFFIX,
    Compiler,
    CompilerFailedError,
    build_shared_library,
    find_compiler,
    machine_flags,
)
from mpskit.metal.launching import BufferParameter, Dispatch, Kernel, Library
from mpskit.metal.sanitizer.debug_information import carrier_source
from mpskit.metal.sanitizer.reading import Uint3, is_meant, read_report
from mpskit.metal.sanitizer.reports import Report, SanitizerError
from mpskit.metal.sanitizer.symbols import Symbols

if TYPE_CHECKING:
    import torch

_HERE = Path(__file__).parent
_INCLUDE_DIRS = (*INCLUDE_DIRS, _HERE)
# As PyTorch compiles Metal: no fast-math, and no contraction either, so that results do not
# depend on the host's compiler. Kernels reinterpret memory freely, hence no strict aliasing.
_FLAGS = (
    "-std=c++20",
    "-fPIC",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-strict-aliasing",
    "-fsigned-char",
    "-fno-exceptions",
    "-fno-rtti",
    "-fvisibility=hidden",
    "-nostdinc",
    "-nostdinc++",
    "-fstack-clash-protection",
    "-w",
)
_SPEED = ("-O2",)
# clang takes a read for part of the write that follows it, and watches no vector over 16 bytes.
_EVERY_ACCESS = (
    "-fsanitize=array-bounds",
    "-fno-slp-vectorize",
    "-mllvm",
    "-tsan-instrument-read-before-write=1",
)
# What gcc would merge, move or make a call of memset.
_PLAIN_CODE = (
    "-fsanitize=bounds",
    "-fno-store-merging",
    "-fno-thread-jumps",
    "-fno-crossjumping",
    "-finline-small-functions",
    "-fno-tree-loop-distribute-patterns",
)


_POINTER_BYTES = 8


class CpuKernel(Kernel):
    """A kernel as machine code of this process, on as many cores as ``torch.set_num_threads``."""

    device_type = "cpu"
    can_be_stopped = True

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
                if p.kind == ParameterKind.BUFFER
            ),
            {p.index: p.name.decode() for p in parameters if p.kind == ParameterKind.THREADGROUP},
        )

    def _launch(self, arguments: Sequence[torch.Tensor | Packed], dispatch: Dispatch) -> None:
        import torch

        memory = [_Memory.of(argument) for argument in arguments]
        addresses = [place.address for place in memory]
        lengths = dispatch.threadgroup_lengths
        self._run(
            memory,
            DispatchRecord(
                kernel=ctypes.pointer(self._record),
                buffers=(ctypes.c_void_p * max(1, len(addresses)))(*addresses),
                threadgroup_lengths=(ctypes.c_ulong * max(1, len(lengths)))(*lengths),
                threadgroup_length_count=len(lengths),
                threads=Uint3(*dispatch.threads),
                group_size=Uint3(*dispatch.group_size),
                workers=torch.get_num_threads(),
                timeout=dispatch.timeout or 0.0,
                interruptible=interrupts.are_raised(),
            ),
        )

    def _run(self, memory: Sequence[_Memory], record: DispatchRecord) -> None:
        """Runs a dispatch whose arguments lie in ``memory``, and raises what came of it."""
        outcome = _dispatch(record)
        if outcome.failure:
            self._raise_failure(outcome, record)

    def _raise_failure(self, outcome: Outcome, record: DispatchRecord) -> None:
        if outcome.failure == Failure.INTERRUPTED:
            raise KeyboardInterrupt
        message = outcome.message.decode()
        if outcome.failure == Failure.REFUSED:
            raise LaunchError(f"{self.name}: {message}.")
        if outcome.failure == Failure.FAULT:
            raise KernelFaultError(
                f"{self.name}, {message}.",
                hint="Compile with sanitize=True, which names the line and says what led to it.",
            )
        if outcome.failure == Failure.TIMEOUT:
            raise KernelTimeoutError(
                f"{self.name} did not end within {record.timeout:g} s: {message}.",
                hint="Raise timeout=, or look for a loop that threads do not leave.",
            )


class SanitizedKernel(CpuKernel):
    """A kernel that is watched: what it must not do is raised when it has run."""

    def __init__(self, record: Any, library: ctypes.CDLL, symbols: Symbols) -> None:
        super().__init__(record, library)
        self._symbols = symbols

    def _run(self, memory: Sequence[_Memory], record: DispatchRecord) -> None:
        buffers = [self._described(index, place) for index, place in enumerate(memory)]
        for index, place in enumerate(memory):
            buffers += self._pointees(index, place.argument)
        record.sanitized = (Buffer * max(1, len(buffers)))(*buffers)
        record.buffer_count = len(buffers)
        outcome = _dispatch(record)
        if outcome.failure == Failure.INTERRUPTED:
            raise KeyboardInterrupt
        reports = list(self._reports(outcome))
        ended_early = outcome.failure in (Failure.FAULT, Failure.TIMEOUT)
        fault = self._placed_message(outcome) if ended_early else None
        if reports:
            raise SanitizerError(reports, fault=fault)
        if fault and outcome.failure == Failure.FAULT:
            raise KernelFaultError(f"{self.name}, {fault}.")
        self._raise_failure(outcome, record)

    def _pointees(self, index: int, argument: torch.Tensor | Packed) -> Iterator[Buffer]:
        """The tensors that a struct points to; their types are those of the tensors."""
        if not isinstance(argument, Packed):
            return
        for number, tensor in enumerate(argument.pointees):
            place = _Memory.of(tensor)
            yield Buffer(
                address=place.address,
                bytes=place.bytes,
                element_bytes=place.item_bytes,
                scalar_bytes=_cell_bytes(place.item_bytes),
                writable=True,
                name=f"{self._name_of(index)}[{number}]".encode(),
            )

    def _name_of(self, index: int) -> str:
        parameter = self._buffers_by_index.get(index)
        return parameter.name if parameter else f"argument {index}"

    def _described(self, index: int, place: _Memory) -> Buffer:
        parameter = self._buffers_by_index.get(index)
        size = parameter.size if parameter and parameter.size else place.item_bytes
        return Buffer(
            address=place.address,
            bytes=place.bytes,
            element_bytes=size,
            scalar_bytes=_cell_bytes(min(place.item_bytes, size)),
            writable=parameter.writable if parameter else True,
            may_hold_addresses=place.may_hold_addresses,
            name=self._name_of(index).encode(),
        )

    def _reports(self, outcome: Outcome) -> Iterator[Report]:
        # A call's address is that behind it: one byte less is in the call.
        base = outcome.image + 1 if outcome.image else 0
        for raw in outcome.reports[: outcome.report_count]:
            if not is_meant(raw, lambda pc: self._symbols.lines_of(pc - base)):
                yield read_report(raw, self.name, lambda pc: self._symbols.line_of(pc - base))

    def _placed_message(self, outcome: Outcome) -> str:
        message: str = outcome.message.decode()
        if not outcome.pc or not outcome.image:
            return message
        line = self._symbols.line_of(outcome.pc - outcome.image)
        return f"{line}: {message}" if line.number else message


@dataclass(frozen=True)
class _Memory:
    """Where an argument lies, how far it goes, and the size of its elements."""

    address: int
    argument: torch.Tensor | Packed
    owner: object = None

    @classmethod
    def of(cls, argument: torch.Tensor | Packed) -> _Memory:
        if isinstance(argument, Packed):
            # 16 bytes more, for vectors read beyond the last element of a short array.
            data = ctypes.create_string_buffer(argument.data, len(argument.data) + 16)
            return cls(ctypes.addressof(data), argument, data)
        return cls(argument.data_ptr(), argument)

    @property
    def bytes(self) -> int:
        if isinstance(self.argument, Packed):
            return len(self.argument.data)
        before = int(self.argument.storage_offset()) * self.item_bytes
        return max(0, self.argument.untyped_storage().nbytes() - before)

    @property
    def may_hold_addresses(self) -> bool:
        """Bytes and integers of a pointer's size can be structs with pointers."""
        if isinstance(self.argument, Packed):
            return True
        return not self.argument.is_floating_point() and self.item_bytes in (1, _POINTER_BYTES)

    @property
    def item_bytes(self) -> int:
        if isinstance(self.argument, Packed):
            return self.argument.item_size
        return self.argument.element_size()


def _dispatch(record: DispatchRecord) -> Outcome:
    outcome = Outcome()
    _runtime().mpskit_dispatch(
        ctypes.byref(record), ctypes.byref(_interpreter()), ctypes.byref(outcome)
    )
    return outcome


@lru_cache(maxsize=1)
def _interpreter() -> Interpreter:
    names = ("PyErr_CheckSignals", "PyEval_SaveThread", "PyEval_RestoreThread")
    return Interpreter(*(ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p) for name in names))


def _cell_bytes(size: int) -> int:
    """The largest of 1, 2 and 4 that divides a size."""
    return next(cell for cell in (4, 2, 1) if size % cell == 0)


def _load(file: Path, *, sanitize: bool) -> Library:
    library = ctypes.CDLL(str(file))
    bind = getattr(library, emit.BIND_SYMBOL)
    bind.argtypes, bind.restype = [ctypes.c_void_p], None
    bind(_runtime().mpskit_runtime())
    table = getattr(library, emit.TABLE_SYMBOL)
    table.restype = ctypes.POINTER(KernelRecord)
    records = _records(table())
    if sanitize:
        symbols = Symbols(file, is_ours)
        return Library(SanitizedKernel(record, library, symbols) for record in records)
    return Library(CpuKernel(record, library) for record in records)


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
        depends=[THREAD_HEADER, *sorted(_HERE.rglob("*.h"))],
    )
    runtime = ctypes.PyDLL(str(file))  # with Python's lock, which a dispatch releases itself
    runtime.mpskit_runtime.restype = ctypes.c_void_p
    runtime.mpskit_dispatch.argtypes = [
        ctypes.POINTER(DispatchRecord), ctypes.POINTER(Interpreter), ctypes.POINTER(Outcome)
    ]  # fmt: skip
    runtime.mpskit_dispatch.restype = None
    return runtime


def compile_library(embedded: str, *, metal_version: int, sanitize: bool = False) -> Library:
    """Compiles a Metal source whose includes are embedded, or takes it from the cache."""
    compiler = find_compiler()
    flags = (
        *_FLAGS,
        *(_sanitizer_flags(compiler) if sanitize else _SPEED),
        *machine_flags(compiler),
        *message_flags(compiler),
    )
    parts = [embedded, str(metal_version), *compiler.command, compiler.version, *flags]
    translation_unit = emit.sanitized_translation_unit if sanitize else emit.translation_unit

    def build(file: Path) -> None:
        unit = file.with_suffix(".cpp")
        text = translate(embedded, compiler, translation_unit, metal_version=metal_version)
        unit.write_text(text)
        try:
            _compile(compiler, flags, unit, file, in_two_steps=sanitize)
        except CompilerFailedError as error:
            messages = read_messages(error.output)
            raise_users_errors(messages, text, embedded, compiler, metal_version=metal_version)
            raise

    name = f"metal-{cache.key([*parts, package_digest()])}{SUFFIX}"
    return _load(cache.entry(name, build), sanitize=sanitize)


def _compile(
    compiler: Compiler, flags: Sequence[str], unit: Path, file: Path, *, in_two_steps: bool
) -> None:
    """Makes the library ``file``; in two steps where linking must not see the flags."""
    includes = [f"-I{folder}" for folder in _INCLUDE_DIRS]
    if in_two_steps:
        linked = [unit.with_suffix(".o")]
        compiler.run([*flags, *includes, "-c", unit, "-o", linked[0]])
        if sys.platform == "darwin":
            linked.append(unit.with_name("carrier.cpp"))
            linked[1].write_text(carrier_source(linked[0]))
        compiler.run(["-shared", *linked, "-o", file])
    else:
        compiler.run([*flags, *includes, "-shared", unit, "-o", file])


def _sanitizer_flags(compiler: Compiler) -> tuple[str, ...]:
    """Calls for every access that the source has, one for one, with lines to tell them by."""
    return (
        "-O1",
        "-g1",
        "-fsanitize=thread",
        "-fsanitize=alignment",
        "-fno-tree-vectorize",
        "-fno-omit-frame-pointer",
        *(_EVERY_ACCESS if compiler.is_clang else _PLAIN_CODE),
    )

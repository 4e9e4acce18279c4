"""Kernel libraries on an NVIDIA GPU: compile, load, launch."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

import torch

from mpskit.errors import MpskitError
from mpskit.metal import cache
from mpskit.metal.arguments import Packed
from mpskit.metal.codegen.diagnostics import Message
from mpskit.metal.codegen.translate import package_digest, raise_users_errors, translate
from mpskit.metal.cuda import emit, nvrtc
from mpskit.metal.errors import LaunchError
from mpskit.metal.host_compiler import CompilerFailedError, find_compiler
from mpskit.metal.launching import BufferParameter, Dispatch, Kernel, Library, Pointee, Size3

MAX_THREADGROUP_MEMORY = 32768
_MAX_THREADGROUPS = 2**31 - 1
_MAX_BLOCKS_IN_Y_AND_Z = 65535
_MAX_BLOCK_SIZE_IN_Z = 64
# Of each [[threadgroup(n)]] argument, and bytes readable beyond the last element of an array.
_ALIGNMENT = _PADDING = 16
# Bytes a thread; CUDA's own limit at first.
_STACK_FOR_CALLS = 1024


class _Dispatch(ctypes.Structure):
    """cuda::Dispatch of launch.h."""

    _fields_ = (
        ("threads", ctypes.c_uint * 3),
        ("group_size", ctypes.c_uint * 3),
        ("groups", ctypes.c_uint * 3),
        ("is_native", ctypes.c_uint),
    )


@lru_cache(maxsize=1)
def _driver() -> Any:
    from cuda.bindings import driver

    return driver


class Module:
    """A cubin in this process; its code is loaded into a GPU when that first needs it."""

    def __init__(self, cubin: bytes) -> None:
        from cuda.core import ObjectCode

        self._code = ObjectCode.from_cubin(cubin)

    def kernel(self, symbol: str) -> Any:
        """The driver's handle of an entry point, a CUkernel."""
        return self._code.get_kernel(symbol).handle

    def global_bytes(self, symbol: str) -> bytes:
        """What a ``__device__`` variable holds on the current device."""
        driver = _driver()
        address, size = _check(driver.cuLibraryGetGlobal(self._code.handle, symbol.encode()))
        buffer = ctypes.create_string_buffer(size)
        _check(driver.cuMemcpyDtoH(ctypes.addressof(buffer), address, size))
        return buffer.raw


class CudaKernel(Kernel):
    """A kernel as a GPU's machine code."""

    device_type = "cuda"

    def __init__(
        self, description: emit.KernelDescription, pointees: Sequence[Pointee], module: Module
    ) -> None:
        """
        Args:
            description: what the library says of the kernel.
            pointees: of its parameters, in their order.
            module: holds the code.
        """
        self._module = module
        self._kernel = module.kernel(description.symbol)
        self._function = _driver().CUfunction(int(self._kernel))
        self._parameters = [
            (bound, BufferParameter.of(bound.name, bound.index, pointee))
            for bound, pointee in zip(description.parameters, pointees, strict=True)
        ]
        super().__init__(
            description.name,
            description.max_threads,
            (parameter for bound, parameter in self._parameters if bound.kind == "buffer"),
            {b.index: b.name for b, _ in self._parameters if b.kind == "threadgroup"},
        )
        self._static_memory: dict[int, int] = {}

    def _launch(self, arguments: Sequence[torch.Tensor | Packed], dispatch: Dispatch) -> None:
        device = self._device(arguments)
        groups = _threadgroups(dispatch)
        if prod(groups) > _MAX_THREADGROUPS:
            raise LaunchError(
                f"{self.name}: {prod(groups)} threadgroups; the cuda backend launches up to "
                f"{_MAX_THREADGROUPS}.",
                hint="Use larger threadgroups, or several launches.",
            )
        offsets, dynamic_memory = _places(dispatch.threadgroup_lengths)
        with _current_device(device):
            self._check_memory(device, dynamic_memory)
            native = _is_native(dispatch, groups)
            record = _Dispatch(dispatch.threads, dispatch.group_size, groups, native)
            values = list(self._values(arguments, offsets, device))
            addresses = [
                ctypes.c_uint64(v.data_ptr()) if isinstance(v, torch.Tensor) else v for v in values
            ]
            self._enqueue(
                [record, *addresses],
                grid=groups if native else (prod(groups), 1, 1),
                block=dispatch.group_size if native else (prod(dispatch.group_size), 1, 1),
                dynamic_memory=dynamic_memory,
                stream=torch.cuda.current_stream(device).cuda_stream,
            )

    def _device(self, arguments: Sequence[torch.Tensor | Packed]) -> int:
        """The device of the tensors, or torch's current one where there are none."""
        indices = {a.device.index: i for i, a in enumerate(arguments) if not isinstance(a, Packed)}
        if len(indices) > 1:
            places = ", ".join(f"argument {i} on cuda:{index}" for index, i in indices.items())
            raise LaunchError(f"{self.name}: the tensors are on different devices: {places}.")
        return next(iter(indices), torch.cuda.current_device())

    def _check_memory(self, device: int, dynamic: int) -> None:
        if device not in self._static_memory:
            _reserve_stack(_attribute(self._kernel, device, "LOCAL_SIZE_BYTES"))
            self._static_memory[device] = _attribute(self._kernel, device, "SHARED_SIZE_BYTES")
        needed = self._static_memory[device] + dynamic
        if needed > MAX_THREADGROUP_MEMORY:
            raise LaunchError(
                f"{self.name}: threadgroup memory: {needed} bytes are needed, "
                f"{MAX_THREADGROUP_MEMORY} is the most that a threadgroup has."
            )

    def _values(
        self, arguments: Sequence[torch.Tensor | Packed], offsets: Sequence[int], device: int
    ) -> Iterator[Any]:
        """The entry point's arguments behind the dispatch; a tensor stands for its address."""
        for bound, parameter in self._parameters:
            if bound.kind == "threadgroup":
                yield ctypes.c_uint(offsets[bound.index])
                continue
            argument = arguments[bound.index]
            if bound.is_constant_reference and parameter.size <= emit.BY_VALUE_LIMIT:
                yield self._by_value(argument, parameter)
            elif isinstance(argument, Packed):
                data = bytearray(argument.data) + bytes(_PADDING)
                yield torch.frombuffer(data, dtype=torch.uint8).to(device)
            else:
                yield argument

    def _by_value(self, argument: torch.Tensor | Packed, parameter: BufferParameter) -> Any:
        if isinstance(argument, Packed):
            data = argument.data
        else:
            data = _read_back(argument, parameter.size)
            if len(data) < parameter.size:
                raise LaunchError(
                    f"{self.name}: argument {parameter.index} ('{parameter.name}') has {len(data)} "
                    f"bytes, the kernel reads {parameter.size}."
                )
        return (ctypes.c_ubyte * parameter.size).from_buffer_copy(data)

    def _enqueue(
        self,
        values: Sequence[Any],
        *,
        grid: Size3,
        block: Size3,
        dynamic_memory: int,
        stream: int,
    ) -> None:
        """Launches by the driver's own call, since cuda.core's launch takes no structs."""
        addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        _check(
            _driver().cuLaunchKernel(
                self._function,
                *grid,
                *block,
                dynamic_memory,
                stream,
                ctypes.addressof(addresses),
                0,
            )
        )


_threads_with_context = threading.local()


@contextmanager
def _current_device(device: int) -> Iterator[None]:
    """Makes a device torch's current one, and its context that of the driver's calls.

    torch leaves a new thread without a context where it is to use the device it has anyway.
    """
    with torch.cuda.device(device):
        if getattr(_threads_with_context, "device", None) != device:
            from cuda.core import Device

            Device(device).set_current()
            _threads_with_context.device = device
        yield


def _threadgroups(dispatch: Dispatch) -> Size3:
    x, y, z = (-(-t // g) for t, g in zip(dispatch.threads, dispatch.group_size, strict=True))
    return x, y, z


def _is_native(dispatch: Dispatch, groups: Size3) -> bool:
    """Whether CUDA can launch a dispatch as it is: within its limits, and with no ragged edge."""
    whole = all(t % g == 0 for t, g in zip(dispatch.threads, dispatch.group_size, strict=True))
    return (
        whole
        and max(groups[1:]) <= _MAX_BLOCKS_IN_Y_AND_Z
        and dispatch.group_size[2] <= _MAX_BLOCK_SIZE_IN_Z
    )


def _places(lengths: Sequence[int]) -> tuple[list[int], int]:
    """Offsets of the [[threadgroup(n)]] arguments in dynamic memory, and the sum of their bytes."""
    offsets, end = [], 0
    for length in lengths:
        begin = -(-end // _ALIGNMENT) * _ALIGNMENT
        offsets.append(begin)
        end = begin + length
    return offsets, end


def _attribute(kernel: Any, device: int, name: str) -> int:
    driver = _driver()
    attribute = getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
    (value,) = _check(driver.cuKernelGetAttribute(attribute, kernel, driver.CUdevice(device)))
    return int(value)


def _reserve_stack(frame: int) -> None:
    """Makes room on the current device's stacks for a kernel's frame and for its calls.

    What recursive functions need, CUDA cannot tell, and takes the context's limit for enough.
    """
    driver = _driver()
    limit = driver.CUlimit.CU_LIMIT_STACK_SIZE
    (size,) = _check(driver.cuCtxGetLimit(limit))
    if frame > 0 and size < frame + _STACK_FOR_CALLS:
        _check(driver.cuCtxSetLimit(limit, frame + _STACK_FOR_CALLS))


def _read_back(tensor: torch.Tensor, size: int) -> bytes:
    """Up to ``size`` bytes of a tensor's storage, from its offset on."""
    available = tensor.untyped_storage().nbytes() // tensor.itemsize - tensor.storage_offset()
    count = min(-(-size // tensor.itemsize), available)
    elements = torch.as_strided(tensor, (count,), (1,)).cpu()
    return ctypes.string_at(elements.data_ptr(), int(count) * tensor.itemsize)


def _check(result: tuple[Any, ...]) -> tuple[Any, ...]:
    """A driver call's values, without its status."""
    status, *values = result
    if status != 0:
        _, text = _driver().cuGetErrorString(status)
        reason = text.decode() if text else "unknown"
        raise MpskitError(f"The CUDA driver refused: {reason} ({status.name}).")
    return tuple(values)


def compile_library(embedded: str, *, metal_version: int) -> Library:
    """Compiles a Metal source whose includes are embedded, or takes it from the cache.

    The code is for the architecture of torch's current CUDA device.
    """
    if not torch.cuda.is_available():
        raise MpskitError(
            "The cuda backend needs an NVIDIA GPU that torch can use.",
            hint="Use backend='cpu' here; it runs the same source.",
        )
    arch = "sm_{}{}".format(*torch.cuda.get_device_capability())
    compiler = find_compiler()
    parts = [embedded, str(metal_version), *compiler.command, compiler.version]
    parts += [nvrtc.version(), arch, repr(nvrtc.OPTIONS), package_digest()]

    def build(file: Path) -> None:
        unit = translate(embedded, compiler, emit.translation_unit, metal_version=metal_version)
        try:
            file.write_bytes(nvrtc.compile_to_cubin(unit, arch=arch))
        except CompilerFailedError as error:
            found = nvrtc.read_diagnostics(error.output)
            messages = [Message(d) for d in found if d.severity == "error"]
            raise_users_errors(messages, unit, embedded, compiler, metal_version=metal_version)
            raise

    return _load(cache.entry(f"metal-{cache.key(parts)}.cubin", build).read_bytes())


def _load(cubin: bytes) -> Library:
    module = Module(cubin)
    with _current_device(torch.cuda.current_device()):
        text = module.global_bytes(emit.DESCRIPTION_SYMBOL).rstrip(b"\0").decode()
        rows = module.global_bytes(emit.POINTEES_SYMBOL)
    pointees = iter((Pointee * (len(rows) // ctypes.sizeof(Pointee))).from_buffer_copy(rows))
    return Library(
        CudaKernel(kernel, [next(pointees) for _ in kernel.parameters], module)
        for kernel in emit.read_description(text)
    )

"""LogSoftmaxPlan.h, compiled and asked: the launches that log_softmax makes on a Mac."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from mpskit.errors import MpskitError
from mpskit.metal.host_compiler import build_shared_library
from mpskit.verify.sources import PatchSources

# Names of the kernels' element types in Metal.
METAL_DTYPES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat"}
# An M1 Pro's; the plan's thresholds are multiples of the number of cores.
DEFAULT_CORES = 16
# c10::metal::max_ndim.
MAX_DIMS = 16

_MAX_LAUNCHES = 2
_AUTOMATIC = 0xFFFFFFFF


class Kernel(IntEnum):
    """The plan's branches. ``SPLIT`` is log_softmax_partial and log_softmax_finalize."""

    ROW = 0
    SPLIT = 1
    STRIDED = 2
    LONG_STRIDED = 3
    TRANSPOSE = 4
    LONG_ROW = 5


class Index(IntEnum):
    """The width of the kernels' index type."""

    U64 = 0
    U32 = 1


@dataclass(frozen=True)
class RowDim:
    """One dimension that numbers the rows; strides are in elements."""

    size: int
    input_stride: int
    output_stride: int


@dataclass(frozen=True)
class Params:
    """LogSoftmaxParams, with ``row_dims`` innermost first; strides are in elements."""

    row_dims: tuple[RowDim, ...]
    rows: int
    dim_size: int
    dim_input_stride: int
    dim_output_stride: int
    chunk_size: int
    chunks: int
    vectors: bool


@dataclass(frozen=True)
class Launch:
    """One dispatch: host name of the kernel, threads of the grid and of a threadgroup."""

    kernel: str
    grid: tuple[int, int, int]
    group: tuple[int, int, int]


@dataclass(frozen=True)
class Plan:
    """What LogSoftmaxPlan.h decided.

    ``packed_params`` are the bytes of LogSoftmaxParams in the plan's index width.
    ``partials_bytes`` is the size of the temporary between two launches, 0 where there is none.
    """

    kernel: Kernel
    index: Index
    params: Params
    packed_params: bytes
    launches: tuple[Launch, ...]
    partials: int
    partials_bytes: int


class _Request(ctypes.Structure):
    _fields_ = (
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("input_strides", ctypes.POINTER(ctypes.c_int64)),
        ("output_strides", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_int64),
        ("dim", ctypes.c_int64),
        ("element_size", ctypes.c_uint64),
        ("input_offset", ctypes.c_uint64),
        ("output_offset", ctypes.c_uint64),
        ("dtype", ctypes.c_char_p),
        ("cores", ctypes.c_uint64),
        ("kernel", ctypes.c_uint32),
        ("use_u32", ctypes.c_uint32),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_char * 64),
        ("grid", ctypes.c_uint64 * 3),
        ("group", ctypes.c_uint64 * 3),
    )


class _Params(ctypes.Structure):
    _fields_ = (
        ("row_sizes", ctypes.c_uint64 * MAX_DIMS),
        ("row_input_strides", ctypes.c_uint64 * MAX_DIMS),
        ("row_output_strides", ctypes.c_uint64 * MAX_DIMS),
        ("rows", ctypes.c_uint64),
        ("dim_size", ctypes.c_uint64),
        ("dim_input_stride", ctypes.c_uint64),
        ("dim_output_stride", ctypes.c_uint64),
        ("chunk_size", ctypes.c_uint64),
        ("chunks", ctypes.c_uint64),
        ("row_ndim", ctypes.c_uint32),
        ("vectors", ctypes.c_uint32),
    )


class _Response(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_uint32),
        ("use_u32", ctypes.c_uint32),
        ("partials", ctypes.c_uint64),
        ("partials_bytes", ctypes.c_uint64),
        ("params", _Params),
        ("packed_params", ctypes.c_ubyte * ctypes.sizeof(_Params)),
        ("packed_size", ctypes.c_uint64),
        ("launch_count", ctypes.c_uint64),
        ("launches", _Launch * _MAX_LAUNCHES),
    )


_REFUSALS = {
    1: "The {kernel} kernel cannot run this problem: it keeps a row in registers, and the row "
    "is too long, or there are more rows than a grid has places.",
    2: "32-bit indices cannot reach every element of this problem.",
    3: f"More than {MAX_DIMS} dimensions are left after merging what is contiguous.",
}


class Planner:
    """Plans log_softmax with the LogSoftmaxPlan.h of a patch set."""

    def __init__(self, sources: PatchSources) -> None:
        self._library = _load(sources)

    def plan(
        self,
        sizes: Sequence[int],
        input_strides: Sequence[int],
        output_strides: Sequence[int],
        dim: int,
        dtype: torch.dtype,
        *,
        offsets: tuple[int, int] = (0, 0),
        cores: int = DEFAULT_CORES,
        kernel: Kernel | None = None,
        index: Index | None = None,
    ) -> Plan:
        """The launches for non-empty tensors of these sizes and strides (in elements).

        Args:
            dim: the reduced dimension, not negative.
            offsets: bytes from an address that is aligned for every type to the first element of
                input and output.
            cores: of the GPU.
            kernel: takes this branch instead of the plan's choice.
            index: takes this width instead of the narrowest that fits.

        Raises:
            MpskitError: what was forced cannot give right results.
        """
        request = _Request(
            *(_int64_array(values) for values in (sizes, input_strides, output_strides)),
            len(sizes),
            dim,
            dtype.itemsize,
            *offsets,
            METAL_DTYPES[dtype].encode(),
            cores,
            _AUTOMATIC if kernel is None else kernel,
            _AUTOMATIC if index is None else index,
        )
        response = _Response()
        status = self._library.mpskit_plan_log_softmax(
            ctypes.byref(request), ctypes.byref(response)
        )
        if status:
            raise MpskitError(
                _REFUSALS[status].format(kernel=kernel.name.lower() if kernel is not None else ""),
                hint="Force another kernel or index width, or leave the choice to the plan.",
            )
        return _read(response)

    def plan_tensors(self, input: torch.Tensor, output: torch.Tensor, dim: int, **how: Any) -> Plan:
        """As :meth:`plan`, for an input and an output of the same sizes."""
        return self.plan(
            input.shape,
            input.stride(),
            output.stride(),
            dim % max(1, input.dim()),
            input.dtype,
            offsets=(input.data_ptr(), output.data_ptr()),
            **how,
        )


@lru_cache
def _load(sources: PatchSources) -> ctypes.CDLL:
    path = build_shared_library(
        Path(__file__).with_name("log_softmax_plan.cpp").read_text(),
        name="log_softmax_plan",
        include_dirs=sources.include_dirs,
        depends=sources.headers,
    )
    library = ctypes.CDLL(str(path))
    library.mpskit_plan_log_softmax.argtypes = [
        ctypes.POINTER(_Request),
        ctypes.POINTER(_Response),
    ]
    library.mpskit_plan_log_softmax.restype = ctypes.c_uint32
    return library


def _int64_array(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def _read(response: _Response) -> Plan:
    return Plan(
        kernel=Kernel(response.kernel),
        index=Index(response.use_u32),
        params=_read_params(response.params),
        packed_params=bytes(response.packed_params[: response.packed_size]),
        launches=tuple(
            Launch(launch.kernel.decode(), _triple(launch.grid), _triple(launch.group))
            for launch in response.launches[: response.launch_count]
        ),
        partials=response.partials,
        partials_bytes=response.partials_bytes,
    )


def _read_params(params: _Params) -> Params:
    dims = zip(params.row_sizes, params.row_input_strides, params.row_output_strides, strict=True)
    return Params(
        row_dims=tuple(RowDim(*dim) for dim in dims)[: params.row_ndim],
        rows=params.rows,
        dim_size=params.dim_size,
        dim_input_stride=params.dim_input_stride,
        dim_output_stride=params.dim_output_stride,
        chunk_size=params.chunk_size,
        chunks=params.chunks,
        vectors=bool(params.vectors),
    )


def _triple(values: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = values
    return x, y, z

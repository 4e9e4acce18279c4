"""The plans of log_softmax and of its backward, compiled and asked: what a Mac launches."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import torch

from mpskit.errors import MpskitError
from mpskit.metal.host_compiler import build_shared_library
from mpskit.verify.sources import PatchSources

# Names of the kernels' element types in Metal.
METAL_DTYPES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat"}
# An M1 Pro's; the plans' thresholds are multiples of the number of cores.
DEFAULT_CORES = 16
# c10::metal::max_ndim.
MAX_DIMS = 16

_MAX_LAUNCHES = 2
_AUTOMATIC = 0xFFFFFFFF
_HERE = Path(__file__).parent


class Kernel(IntEnum):
    """The branches of LogSoftmaxPlan.h. ``SPLIT`` is a partial and a finalize kernel."""

    ROW = 0
    SPLIT = 1
    STRIDED = 2
    LONG_STRIDED = 3
    TRANSPOSE = 4
    LONG_ROW = 5


class BackwardKernel(IntEnum):
    """The branches of LogSoftmaxBackwardPlan.h. ``SPLIT`` is a partial and a finalize kernel."""

    ROW = 0
    SPLIT = 1
    STRIDED = 2
    LONG_ROW = 3


class Index(IntEnum):
    """The width of the kernels' index type."""

    U64 = 0
    U32 = 1


@dataclass(frozen=True)
class RowDim:
    """One dimension that numbers the rows; strides are in elements, by tensor."""

    size: int
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Params:
    """LogSoftmaxParams, with ``row_dims`` innermost first; strides are in elements, by tensor.

    Tensors are in the parameters' own order: input and output, and for the backward output, grad
    and grad_input.
    """

    row_dims: tuple[RowDim, ...]
    rows: int
    dim_size: int
    dim_strides: tuple[int, ...]
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
    """What a plan header decided.

    ``kernel`` is its branch; ``packed_params`` are the bytes of LogSoftmaxParams in the plan's
    index width; ``partials_bytes`` is the size of the temporary between two launches, 0 where
    there is none.
    """

    kernel: IntEnum
    index: Index
    params: Params
    packed_params: bytes
    launches: tuple[Launch, ...]
    partials: int
    partials_bytes: int


class _Launch(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_char * 64),
        ("grid", ctypes.c_uint64 * 3),
        ("group", ctypes.c_uint64 * 3),
    )


class _Abi:
    """The structs of plan_answer.h for a number of tensors."""

    def __init__(self, tensors: int) -> None:
        self.Strides: Any = ctypes.POINTER(ctypes.c_int64) * tensors

        class Request(ctypes.Structure):
            _fields_ = (
                ("sizes", ctypes.POINTER(ctypes.c_int64)),
                ("strides", self.Strides),
                ("offsets", ctypes.c_uint64 * tensors),
                ("ndim", ctypes.c_int64),
                ("dim", ctypes.c_int64),
                ("element_size", ctypes.c_uint64),
                ("dtype", ctypes.c_char_p),
                ("cores", ctypes.c_uint64),
                ("kernel", ctypes.c_uint32),
                ("use_u32", ctypes.c_uint32),
            )

        class RowDim(ctypes.Structure):
            _fields_ = (("size", ctypes.c_uint64), ("strides", ctypes.c_uint64 * tensors))

        class Params(ctypes.Structure):
            _fields_ = (
                ("rows", ctypes.c_uint64),
                ("dim_size", ctypes.c_uint64),
                ("dim_strides", ctypes.c_uint64 * tensors),
                ("chunk_size", ctypes.c_uint64),
                ("chunks", ctypes.c_uint64),
                ("row_ndim", ctypes.c_uint32),
                ("vectors", ctypes.c_uint32),
                ("row_dims", RowDim * MAX_DIMS),
            )

        class Response(ctypes.Structure):
            _fields_ = (
                ("kernel", ctypes.c_uint32),
                ("use_u32", ctypes.c_uint32),
                ("partials", ctypes.c_uint64),
                ("partials_bytes", ctypes.c_uint64),
                ("params", Params),
                ("packed_params", ctypes.c_ubyte * ctypes.sizeof(Params)),
                ("packed_size", ctypes.c_uint64),
                ("launch_count", ctypes.c_uint64),
                ("launches", _Launch * _MAX_LAUNCHES),
            )

        self.Request = Request
        self.Response = Response


_REFUSALS = {
    1: "The {kernel} kernel cannot run this problem: it keeps a row in registers, and the row "
    "is too long, or there are more rows than a grid has places.",
    2: "32-bit indices cannot reach every element of this problem.",
    3: f"More than {MAX_DIMS} dimensions are left after merging what is contiguous.",
}


class _TensorsPlanner:
    """Asks a plan header about tensors of the same sizes, each with strides of its own."""

    source: ClassVar[str]
    tensors: ClassVar[int]
    kernels: ClassVar[type[IntEnum]]

    def __init__(self, sources: PatchSources) -> None:
        self._abi = _Abi(self.tensors)
        self._library = _load(sources, self.source)

    def _plan(
        self,
        sizes: Sequence[int],
        strides: Sequence[Sequence[int]],
        dim: int,
        dtype: torch.dtype,
        *,
        offsets: Sequence[int],
        cores: int = DEFAULT_CORES,
        kernel: IntEnum | None = None,
        index: Index | None = None,
    ) -> Plan:
        request = self._abi.Request(
            _int64_array(sizes),
            self._abi.Strides(*map(_int64_array, strides)),
            (ctypes.c_uint64 * self.tensors)(*offsets),
            len(sizes),
            dim,
            dtype.itemsize,
            METAL_DTYPES[dtype].encode(),
            cores,
            _AUTOMATIC if kernel is None else kernel,
            _AUTOMATIC if index is None else index,
        )
        response = self._abi.Response()
        status = self._library.mpskit_plan(ctypes.byref(request), ctypes.byref(response))
        if status:
            raise MpskitError(
                _REFUSALS[status].format(kernel=kernel.name.lower() if kernel is not None else ""),
                hint="Force another kernel or index width, or leave the choice to the plan.",
            )
        return _read(response, self.kernels)

    def _plan_tensors(self, *tensors: torch.Tensor, dim: int, **how: Any) -> Plan:
        return self._plan(
            tensors[0].shape,
            [tensor.stride() for tensor in tensors],
            dim % max(1, tensors[0].dim()),
            tensors[0].dtype,
            offsets=[tensor.data_ptr() for tensor in tensors],
            **how,
        )


class Planner(_TensorsPlanner):
    """Plans log_softmax with the LogSoftmaxPlan.h of a patch set."""

    source = "log_softmax_plan.cpp"
    tensors = 2
    kernels = Kernel

    def plan(
        self,
        sizes: Sequence[int],
        input_strides: Sequence[int],
        output_strides: Sequence[int],
        dim: int,
        dtype: torch.dtype,
        *,
        offsets: tuple[int, int] = (0, 0),
        **how: Any,
    ) -> Plan:
        """The launches for non-empty tensors of these sizes and strides (in elements).

        Args:
            dim: the reduced dimension, not negative.
            offsets: bytes from an address that is aligned for every type to the first element of
                input and output.
            how: ``cores`` of the GPU; ``kernel``, a branch to take instead of the plan's choice;
                ``index``, a width to take instead of the narrowest that fits.

        Raises:
            MpskitError: what was forced cannot give right results.
        """
        return self._plan(
            sizes, (input_strides, output_strides), dim, dtype, offsets=offsets, **how
        )

    def plan_tensors(self, input: torch.Tensor, output: torch.Tensor, dim: int, **how: Any) -> Plan:
        """As :meth:`plan`, for an input and an output of the same sizes."""
        return self._plan_tensors(input, output, dim=dim, **how)


class BackwardPlanner(_TensorsPlanner):
    """Plans log_softmax's backward with the LogSoftmaxBackwardPlan.h of a patch set."""

    source = "log_softmax_backward_plan.cpp"
    tensors = 3
    kernels = BackwardKernel

    def plan(
        self,
        sizes: Sequence[int],
        grad_strides: Sequence[int],
        output_strides: Sequence[int],
        grad_input_strides: Sequence[int],
        dim: int,
        dtype: torch.dtype,
        *,
        offsets: tuple[int, int, int] = (0, 0, 0),
        **how: Any,
    ) -> Plan:
        """As :meth:`Planner.plan`; ``kernel`` is a :class:`BackwardKernel`."""
        strides = (grad_strides, output_strides, grad_input_strides)
        return self._plan(sizes, strides, dim, dtype, offsets=offsets, **how)

    def plan_tensors(
        self,
        grad: torch.Tensor,
        output: torch.Tensor,
        grad_input: torch.Tensor,
        dim: int,
        **how: Any,
    ) -> Plan:
        """As :meth:`plan`, for tensors of the same sizes."""
        return self._plan_tensors(grad, output, grad_input, dim=dim, **how)


@lru_cache
def _load(sources: PatchSources, source: str) -> ctypes.CDLL:
    path = build_shared_library(
        (_HERE / source).read_text(),
        name=Path(source).stem,
        include_dirs=(_HERE, *sources.include_dirs),
        depends=(_HERE / "plan_answer.h", *sources.headers),
    )
    library = ctypes.CDLL(str(path))
    library.mpskit_plan.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.mpskit_plan.restype = ctypes.c_uint32
    return library


def _int64_array(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def _read(response: Any, kernels: type[IntEnum]) -> Plan:
    return Plan(
        kernel=kernels(response.kernel),
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


def _read_params(params: Any) -> Params:
    row_dims = params.row_dims[: params.row_ndim]
    return Params(
        row_dims=tuple(RowDim(dim.size, tuple(dim.strides)) for dim in row_dims),
        rows=params.rows,
        dim_size=params.dim_size,
        dim_strides=tuple(params.dim_strides),
        chunk_size=params.chunk_size,
        chunks=params.chunks,
        vectors=bool(params.vectors),
    )


def _triple(values: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = values
    return x, y, z

"""Plan headers, compiled and asked: the launches that a patch's host code makes on a Mac.

A plan header is plain C++ that decides which kernel runs, on what grid and with what parameters.
Any will do that has, in one namespace, what those of ``mpskit new`` have::

    enum class Kernel : uint32_t { ... };
    Problem make_problem(sizes, strides by argument, ndim[, bits of the reduced dimensions]);
    bool can_use(Kernel, const Problem&);           // where not every kernel is right for all
    bool can_use_u32(const Problem&);
    Kernel choose_kernel(const Problem&);
    Plan make_plan(const Problem&[, name of the op], dtype, Kernel, bool use_u32);
    template <typename idx_t> Params<idx_t> make_params(const Problem&);

where a Plan has a ``launch`` with ``kernel``, ``grid`` and ``group``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from mpskit.errors import MpskitError
from mpskit.metal.host_compiler import build_shared_library
from mpskit.verify.implementation import Kernels, include_dirs
from mpskit.verify.plan import METAL_DTYPES, Index, Launch

_AUTOMATIC = 0xFFFFFFFF
_MAX_PARAMS = 4096


class _Request(ctypes.Structure):
    _fields_ = (
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_int64),
        ("reduced", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("kernel", ctypes.c_uint32),
        ("use_u32", ctypes.c_uint32),
    )


class _Response(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_char * 96),
        ("grid", ctypes.c_uint64 * 3),
        ("group", ctypes.c_uint64 * 3),
        ("branch", ctypes.c_uint32),
        ("use_u32", ctypes.c_uint32),
        ("params", ctypes.c_ubyte * _MAX_PARAMS),
        ("params_size", ctypes.c_uint64),
    )


_REFUSALS = {
    1: "The {kernel} kernel cannot run this problem.",
    2: "32-bit indices cannot reach every element of this problem.",
    3: "A kernel's name is too long.",
}


@dataclass(frozen=True)
class HeaderPlan:
    """What a plan header decided.

    ``branch`` is a value of its ``Kernel``; ``params`` are the bytes of the parameters in the
    plan's index width.
    """

    branch: int
    index: Index
    launch: Launch
    params: bytes


@dataclass(frozen=True)
class PlanHeader:
    """The plan header of an op.

    Attributes:
        path: below the patch set, e.g. ``aten/src/ATen/native/mps/operations/SquarePlan.h``.
        namespace: of its functions.
        arguments: how many tensors the kernels take.
        name: of the op, for a header that serves several.
    """

    path: str
    namespace: str
    arguments: int
    name: str = ""

    def launch(
        self,
        kernels: Kernels,
        tensors: Sequence[torch.Tensor],
        *,
        sizes: Sequence[int],
        strides: Sequence[Sequence[int]],
        reduced: Sequence[int] = (),
    ) -> HeaderPlan:
        """Plans, and launches the kernel with ``tensors`` and the parameters behind them.

        The last tensor has the dtype that chooses the kernel.

        Args:
            kernels: as an implementation's ``launch`` gets them; their options ``kernel`` and
                ``index`` force a branch and an index width.
            strides: by argument, in elements, one for each of ``sizes``.
            reduced: dimensions, for a plan of reductions.

        Raises:
            MpskitError: what was forced cannot give right results.
        """
        options = kernels.options
        dtype = tensors[-1].dtype
        plan = self.plan(kernels.patch_dir, sizes, strides, dtype, reduced=reduced, options=options)
        kernel = getattr(kernels.library, plan.launch.kernel)
        kernel(*tensors, plan.params, threads=plan.launch.grid, group_size=plan.launch.group)
        return plan

    def plan(
        self,
        patch_dir: Path,
        sizes: Sequence[int],
        strides: Sequence[Sequence[int]],
        dtype: torch.dtype,
        *,
        reduced: Sequence[int] = (),
        options: Mapping[str, Any] | None = None,
    ) -> HeaderPlan:
        """What the header below ``patch_dir`` decides; arguments as in :meth:`launch`."""
        options = options or {}
        kernel, index = options.get("kernel"), options.get("index")
        request = _Request(
            _int64_array(sizes),
            _int64_array([stride for each in strides for stride in each]),
            len(sizes),
            sum(1 << dim for dim in reduced),
            self.name.encode(),
            METAL_DTYPES[dtype].encode(),
            _AUTOMATIC if kernel is None else kernel,
            _AUTOMATIC if index is None else index,
        )
        response = _Response()
        library = _load(self, patch_dir)
        status = library.mpskit_plan(ctypes.byref(request), ctypes.byref(response))
        if status:
            raise MpskitError(
                _REFUSALS[status].format(kernel=kernel),
                hint="Force another kernel or index width, or leave the choice to the plan.",
            )
        return _read(response)


@lru_cache
def _load(header: PlanHeader, patch_dir: Path) -> ctypes.CDLL:
    include = header.path.removeprefix("aten/src/")
    path = build_shared_library(
        Path(__file__).with_suffix(".cpp").read_text(),
        name=f"{header.namespace.rpartition('::')[2]}_plan",
        include_dirs=include_dirs(patch_dir),
        flags=(
            f"-DPLAN_HEADER=<{include}>",
            f"-DPLAN_NAMESPACE={header.namespace}",
            f"-DPLAN_ARGUMENTS={header.arguments}",
        ),
        depends=sorted((patch_dir / "aten").rglob("native/mps/**/*.h")),
    )
    library = ctypes.CDLL(str(path))
    library.mpskit_plan.argtypes = [ctypes.POINTER(_Request), ctypes.POINTER(_Response)]
    library.mpskit_plan.restype = ctypes.c_uint32
    return library


def _int64_array(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def _read(response: _Response) -> HeaderPlan:
    x, y, z = response.grid
    i, j, k = response.group
    return HeaderPlan(
        branch=response.branch,
        index=Index(response.use_u32),
        launch=Launch(response.kernel.decode(), (x, y, z), (i, j, k)),
        params=bytes(response.params[: response.params_size]),
    )

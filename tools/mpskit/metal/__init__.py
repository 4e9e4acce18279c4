"""Metal Shading Language on any machine.

    lib = compile_shader(source, backend="cpu")
    lib.my_kernel(x, out, 3.14, threads=(1024, 8), group_size=(256, 1))

The call is shaped like ``torch.mps.compile_shader``, so a script written for one runs on the
other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpskit.errors import MpskitError
from mpskit.metal.checking import warnings_or_error
from mpskit.metal.errors import (
    CompileError,
    Diagnostic,
    KernelFaultError,
    KernelTimeoutError,
    LaunchError,
)
from mpskit.metal.frontend.function_constants import Value as FunctionConstantValue
from mpskit.metal.frontend.function_constants import pragmas
from mpskit.metal.frontend.loading import load

if TYPE_CHECKING:
    from mpskit.metal import launching, mps

__all__ = [
    "BACKENDS",
    "CompileError",
    "Diagnostic",
    "KernelFaultError",
    "KernelTimeoutError",
    "LaunchError",
    "compile_shader",
]

BACKENDS = ("cpu", "cuda", "mps")
DEFAULT_METAL_VERSION = 320


def compile_shader(
    source: str | Path,
    *,
    backend: str = "cpu",
    include_dirs: Sequence[str | Path] = (),
    metal_version: int = DEFAULT_METAL_VERSION,
    function_constants: Mapping[str | int, FunctionConstantValue] | None = None,
    sanitize: bool = False,
) -> launching.Library | mps.Library:
    """Compiles Metal source and returns its kernels, each as an attribute to be called.

    The lint's warnings are the library's ``diagnostics``; see `mpskit.metal.lint`.

    Args:
        source: Metal source text, or the path of a ``.metal`` file.
        backend: ``cpu`` (a C++ compiler on this machine), ``cuda`` (an NVIDIA GPU) or ``mps`` (a
            Mac's GPU).
        include_dirs: searched for ``#include`` before torch's own headers (``c10/metal/…``).
        metal_version: ``__METAL_VERSION__`` on the cpu and cuda backends: 310, 320, 400, ….
        function_constants: values for ``[[function_constant(n)]]``, by name or index; not on mps.
        sanitize: on the cpu backend, watch every access, barrier and simdgroup operation; a call
            whose kernel did what it must not raises `mpskit.metal.sanitizer.SanitizerError`.

    Raises:
        CompileError: the lint or the compiler refuses the source; says where.
        MpskitError: this machine lacks what the backend needs; says how to get it.
    """
    if backend not in BACKENDS:
        raise MpskitError(
            f"There is no backend {backend!r}.", hint=f"Use one of {', '.join(BACKENDS)}."
        )
    if sanitize and backend != "cpu":
        raise MpskitError(
            f"The {backend} backend has no sanitizer.", hint="Sanitize with backend='cpu'."
        )
    embedded = load(source, include_dirs)
    if backend == "mps":
        if function_constants:
            raise MpskitError(
                "torch.mps.compile_shader takes no function constants.",
                hint="Compile with backend='cpu', or make them macros.",
            )
        from mpskit.metal import mps

        return mps.compile_library(embedded)
    embedded = pragmas(function_constants or {}) + embedded
    warnings = warnings_or_error(embedded, metal_version=metal_version)
    if backend == "cuda":
        from mpskit.metal.cuda import library as cuda

        library = cuda.compile_library(embedded, metal_version=metal_version)
        library.diagnostics = warnings
        return library
    from mpskit.metal.cpu import library as cpu

    library = cpu.compile_library(embedded, metal_version=metal_version, sanitize=sanitize)
    library.diagnostics = warnings
    return library

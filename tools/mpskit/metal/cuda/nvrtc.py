"""From a translation unit to a cubin: NVRTC through cuda.core, its messages as diagnostics."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from mpskit.errors import MpskitError
from mpskit.metal.codegen.translate import INCLUDE_DIRS
from mpskit.metal.cuda.emit import NAMESPACE
from mpskit.metal.errors import Diagnostic, Location
from mpskit.metal.host_compiler import CompilerFailedError

_INSTALL = "Install them: pip install 'mpskit[cuda]'."
# As PyTorch compiles Metal, no fast-math; and no contraction, as on the cpu backend.
OPTIONS: dict[str, Any] = {
    "name": "mpskit",
    "std": "c++20",
    "device_as_default_execution_space": True,
    "fma": False,
    "ftz": False,
    "prec_div": True,
    "prec_sqrt": True,
    "lineinfo": True,
    "disable_warnings": True,
}


@lru_cache(maxsize=1)
def version() -> str:
    """NVRTC's version.

    Raises:
        MpskitError: it, or cuda.core, is not installed.
    """
    try:
        import cuda.core
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
    except Exception as error:  # a missing library is reported by several types
        raise MpskitError(
            f"The cuda backend needs the packages cuda-core and nvidia-cuda-nvrtc ({error}).",
            hint=_INSTALL,
        ) from None
    return f"{major}.{minor} {cuda.core.__version__}"


def compile_to_cubin(unit: str, *, arch: str) -> bytes:
    """Compiles CUDA C++ for one architecture, such as ``sm_90``.

    Raises:
        CompilerFailedError: NVRTC refuses it.
    """
    version()
    from cuda.core import Program, ProgramOptions

    folders = [str(folder) for folder in (*INCLUDE_DIRS, Path(__file__).parent)]
    options = ProgramOptions(arch=arch, include_path=folders, **OPTIONS)
    try:
        return bytes(Program(unit, "c++", options).compile("cubin").code)
    except Exception as error:  # cuda.core's own types are not public
        raise CompilerFailedError(f"NVRTC failed: {error}", output=str(error)) from None


# file(line): error: message, then the line, moved to the right, and a caret below it.
_INDENT = 2
_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?P<severity>catastrophic error|error|warning|note)"
    r"(?: #[\w-]+)?: (?P<message>.*(?:\n {10,}.*)*)(?:\n.*\n(?P<indent> *)\^)?",
    re.MULTILINE,
)


def read_diagnostics(output: str) -> list[Diagnostic]:
    """The messages that NVRTC printed, as diagnostics."""
    return [
        Diagnostic(
            Location(match["file"], int(match["line"]), _column(match["indent"])),
            match["severity"].removeprefix("catastrophic "),
            " ".join(match["message"].replace(f"{NAMESPACE}::", "").split()),
        )
        for match in _DIAGNOSTIC.finditer(output)
    ]


def _column(indent: str | None) -> int:
    return 1 if indent is None else max(1, len(indent) + 1 - _INDENT)

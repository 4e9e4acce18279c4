"""Steps that every backend takes from an embedded source to its compiler, and back from errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from mpskit.metal import cache
from mpskit.metal.codegen.diagnostics import Explainer, Message
from mpskit.metal.codegen.emit import ENTRY_POINTS
from mpskit.metal.errors import CompileError
from mpskit.metal.frontend.kernels import Kernel, read_kernels
from mpskit.metal.frontend.loading import system_dirs
from mpskit.metal.frontend.parsing import parse
from mpskit.metal.frontend.sources import SourceLines
from mpskit.metal.frontend.structure import Program
from mpskit.metal.host_compiler import Compiler

_PACKAGE = Path(__file__).parent.parent
# Searched for the headers that emitted programs include.
INCLUDE_DIRS = (_PACKAGE / "shim", _PACKAGE / "codegen")
THREAD_HEADER = _PACKAGE / "codegen/thread.h"

Emit = Callable[[Program, Sequence[Kernel]], str]


def translate(embedded: str, compiler: Compiler, emit: Emit, *, metal_version: int) -> str:
    """The translation unit that a backend's ``emit`` makes of a source with embedded includes."""
    program = parse(embedded, compiler, metal_version=metal_version)
    # The shim, too, has what depends on the version.
    return f"#define __METAL_VERSION__ {metal_version}\n" + emit(program, read_kernels(program))


@lru_cache(maxsize=1)
def package_digest() -> str:
    """What this package adds to every kernel library, as one hash."""
    files = [*_PACKAGE.rglob("*.h"), *_PACKAGE.rglob("*.py")]
    return cache.key(part for f in sorted(files) for part in (f.name, f.read_bytes()))


def is_ours(file: str) -> bool:
    """Whether a compiler's messages or line tables name a file that the user never wrote."""
    return file.startswith((str(_PACKAGE), ENTRY_POINTS))


def is_system(file: str) -> bool:
    """Whether a file is one of torch's headers."""
    return file.startswith(tuple(str(folder) for folder in system_dirs()))


def raise_users_errors(
    messages: Sequence[Message],
    unit: str,
    embedded: str,
    compiler: Compiler,
    *,
    metal_version: int,
) -> None:
    """Raises CompileError with what a compiler's messages say of the user's source, if anything.

    Args:
        messages: about ``unit``, which `translate` made of the other arguments.
    """
    kernels = read_kernels(parse(embedded, compiler, metal_version=metal_version))
    places = [kernel.location for kernel in kernels]
    explainer = Explainer(unit, SourceLines(embedded), places, is_ours, is_system)
    if diagnostics := explainer.explain(messages):
        raise CompileError(diagnostics) from None

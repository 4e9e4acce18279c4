"""The ``kernels`` target: each .metal file through mpskit.metal, and Apple's tools on a Mac."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

from mpskit.building.context import Context, is_mac
from mpskit.building.process import run
from mpskit.building.result import Built, Step, UnavailableError
from mpskit.building.tools import succeeds
from mpskit.metal import CompileError, compile_shader
from mpskit.metal.frontend.preprocess import read_diagnostics
from mpskit.metal.host_compiler import CompilerNotFoundError

_LIMITS = (
    "The cpu backend compiled them: Apple's own compiler has not seen them, and nothing was run "
    "(`mpskit test` runs them)."
)
_APPLE_LIMITS = "Nothing was run; `mpskit test --backend mps` runs them on this Mac's GPU."

# What PyTorch's cmake/Metal.cmake gives `xcrun metal`, where a base's own cannot be read.
_METAL_FLAGS = ("-Wall", "-Wextra", "-fno-fast-math")
# The oldest language with bfloat; PyTorch builds its bundled library for it.
_METAL_STANDARD = "-std=metal3.1"


def build(context: Context) -> Built:
    """Compiles each ``.metal`` file; on a Mac with Xcode also the way PyTorch's build does it."""
    sources, has_apple_compiler = context.subject.metal_sources, _has_apple_compiler()
    steps = []
    for done, path in enumerate(sources):
        context.announce(Path(path).name, done, len(sources))
        steps.append(_compile(context, path))
        if has_apple_compiler:
            steps.append(_compile_as_pytorch(context, path))
    context.announce("kernels", len(sources), len(sources))
    return Built(tuple(steps), _APPLE_LIMITS if has_apple_compiler else _LIMITS)


def _compile(context: Context, path: str) -> Step:
    started = time.monotonic()
    name = f"{Path(path).name}, cpu backend"
    file = context.subject.root / path
    try:
        library = compile_shader(file, include_dirs=context.subject.include_dirs())
    except CompilerNotFoundError as error:
        raise UnavailableError(error.message, hint=error.hint) from None
    except CompileError as error:
        messages = tuple(str(diagnostic) for diagnostic in error.diagnostics)
        context.log.write("\n".join([f"{name}:", *messages]) + "\n\n")
        return Step(name, False, time.monotonic() - started, messages=messages)
    kernels = dir(library)
    context.log.write(f"{name}: {', '.join(kernels)}\n\n")
    return Step(name, True, time.monotonic() - started, f"{len(kernels)} kernels")


def _has_apple_compiler() -> bool:
    return is_mac() and succeeds("xcrun", "--sdk", "macosx", "--find", "metal")


def _compile_as_pytorch(context: Context, path: str) -> Step:
    root, stem = context.subject.root, Path(path).stem
    product = context.out / "kernels" / f"{stem}.metallib"
    product.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=context.out, prefix=".kernels-") as scratch:
        air, library = Path(scratch, f"{stem}.air"), Path(scratch, product.name)
        compiled = run(
            [
                *("xcrun", "--sdk", "macosx", "metal", "-c", root / path),
                *("-I", root, "-I", root / "aten/src", "-o", air),
                *(_METAL_STANDARD, *_metal_flags(root)),
            ],
            log=context.log,
        )
        finished = compiled
        if compiled.status == 0:
            link = ("xcrun", "--sdk", "macosx", "metallib", "-o", library, air)
            finished = run(link, log=context.log)
        if finished.status == 0:
            library.replace(product)
    seconds = compiled.seconds + (finished.seconds if finished is not compiled else 0)
    name = f"{Path(path).name}, xcrun metal and metallib"
    if finished.status == 0:
        return Step(name, True, seconds, str(product), product=str(product))
    found = [str(d) for d in read_diagnostics(finished.output) if d.severity == "error"]
    return Step(name, False, seconds, messages=tuple(found or [finished.output.strip()]))


def _metal_flags(root: Path) -> tuple[str, ...]:
    """The flags in the base's cmake/Metal.cmake."""
    try:
        text = (root / "cmake/Metal.cmake").read_text()
    except OSError:
        return _METAL_FLAGS
    match = re.search(r"set\(METAL_CFLAGS ([^)]*)\)", text)
    return tuple(match[1].split()) if match else _METAL_FLAGS

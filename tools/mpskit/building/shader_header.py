"""``<Name>_metallib.h``: shaders as a string, for builds that compile them when they are used.

PyTorch's build makes one of each .metal file where it has no Metal compiler, and defines
``PYTORCH_JIT_COMPILE_SHADERS``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mpskit.building.context import Context
from mpskit.building.process import run
from mpskit.errors import MpskitError

_INCLUDE = re.compile(r"^\s*#\s*include\s*<(ATen/native/mps/(\w+)_metallib\.h)>", re.MULTILINE)
_KERNELS = "aten/src/ATen/native/mps/kernels"
_SCRIPT = "scripts/write_metallib_headers.py"


def write_shader_headers(context: Context, source: str, folder: Path) -> Path:
    """Writes the shader headers that ``source`` includes below ``folder``, and returns that.

    Raises:
        MpskitError: the .metal file that one is made of is not in the checkout.
    """
    for include, stem in _INCLUDE.findall(context.subject.read(source)):
        metal = context.subject.root / _KERNELS / f"{stem}.metal"
        if not metal.is_file():
            raise MpskitError(
                f"{source} includes {include}, and there is no {_KERNELS}/{stem}.metal to make "
                "it of.",
                hint="Name the header after the .metal file, or add that file.",
            )
        header = folder / include
        header.parent.mkdir(parents=True, exist_ok=True)
        _write(context, metal, header)
    return folder


def _write(context: Context, metal: Path, header: Path) -> None:
    """By the base's own script; a base that does not carry it gets the same form from us."""
    script = context.subject.root / _SCRIPT
    if not script.is_file():
        header.write_text(shader_header(_embedded(metal, context.subject.include_dirs())))
        return
    finished = run([sys.executable, script, metal, header], log=context.log)
    if finished.status != 0:
        raise MpskitError(
            f"{_SCRIPT} failed on {metal.name}: {finished.output.strip()}",
            hint="See what it printed with --log FILE.",
        )


def _embedded(metal: Path, include_dirs: tuple[Path, ...]) -> str:
    from torch.utils._cpp_embed_headers import embed_headers

    return embed_headers(str(metal), list(include_dirs))


def shader_header(shaders: str) -> str:
    """The header's text: a library named ``lib``, as host code expects, made of ``shaders``."""
    return (
        "#include <ATen/native/mps/OperationUtils.h>\n"
        f'static ::at::native::mps::MetalShaderLibrary lib(R"SHDR(\n{shaders})SHDR");\n'
    )

"""What stands in for an op: kernels of a patch set, and how its host code launches them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from mpskit.errors import MpskitError
from mpskit.metal import compile_shader
from mpskit.patching import default_patch_set_directory

Overload = torch._ops.OpOverload


def _refuse_nothing(*args: Any, **kwargs: Any) -> None:
    """For an op whose host code has no checks of its own."""


def _convert_nothing(*args: Any, **kwargs: Any) -> None:
    """For an op that a device is asked for as MPS is."""


@dataclass(frozen=True)
class Implementation:
    """Kernels in place of an op, called the way the op's host code calls them.

    An op with one result, in one or more forms that share the arguments of ``functional``::

        SQUARE = Implementation(
            functional=torch.ops.aten.square.default,
            out=torch.ops.aten.square.out,
            kernels="aten/src/ATen/native/mps/kernels/Square.metal",
            launch=launch_square,
        )

        def launch_square(kernels: Kernels, out: Tensor, input: Tensor) -> None:
            kernel = getattr(kernels.library, f"square_{METAL_DTYPES[input.dtype]}")
            kernel(out, input, threads=out.numel(), group_size=256)

    Size, strides and dtype of the result, and torch's own errors, come from the op's meta kernel.

    Attributes:
        functional: returns a new tensor.
        out: writes to a tensor that is given; None where the op has no such form.
        in_place: writes to its first argument; None where the op has no such form.
        composites: overloads that torch makes of the others below autograd, such as
            ``aten::log_softmax.int_out``, and that arrive in their place.
        kernels: the .metal file, a path below the patch set.
        launch: from compiled kernels, the tensor to write and the arguments of ``functional``,
            writes the result. Not called where that has no elements.
        refuse: from the arguments of ``functional``, raises the errors of the host code.
        convert: where torch asks a device to convert between dtypes that on MPS it converts itself,
            does what it does there: from a function that runs the kernels and the arguments of
            ``functional``, the result. Else None.
        meta: from the arguments of ``functional`` on the meta device, a result there; for an op
            whose meta kernel in Python has other strides than the structured kernel's.
        unwritten: fills a new result before the kernels run; a value that right results never
            have, so that an element which no kernel wrote stands out.
    """

    functional: Overload
    kernels: str
    launch: Callable[..., None]
    out: Overload | None = None
    in_place: Overload | None = None
    composites: tuple[Overload, ...] = ()
    refuse: Callable[..., None] = _refuse_nothing
    convert: Callable[..., torch.Tensor | None] = _convert_nothing
    meta: Callable[..., torch.Tensor] | None = None
    unwritten: float = 113.0


@dataclass(frozen=True)
class Kernels:
    """The compiled kernels of an implementation, as its ``launch`` gets them.

    Attributes:
        library: as :func:`mpskit.metal.compile_shader` returns it; counts the launches.
        patch_dir: mirrors the PyTorch tree; the kernels' source is below it.
        options: what the op under test was given for ``launch`` to heed.
    """

    library: Any
    patch_dir: Path
    options: Mapping[str, Any] = field(default_factory=dict)


class CountedLibrary:
    """A library whose kernels count their launches, by host name, in ``launches``."""

    def __init__(self, library: Any, launches: Counter[str]) -> None:
        self._library = library
        self._launches = launches

    def __getattr__(self, name: str) -> Callable[..., None]:
        kernel = getattr(self._library, name)

        def launch(*args: Any, **kwargs: Any) -> None:
            kernel(*args, **kwargs)
            self._launches[name] += 1

        return launch

    def __dir__(self) -> list[str]:
        return dir(self._library)


def source_of(implementation: Implementation, patch_dir: Path | None = None) -> Path:
    """The kernels' source in ``patch_dir``, or in the patch set that belongs to this package.

    Raises:
        MpskitError: it is missing there.
    """
    root = patch_dir or default_patch_set_directory()
    path = root / implementation.kernels
    if not path.is_file():
        raise MpskitError(
            f"The patch set has no {implementation.kernels}: {root}",
            hint="Give the directory that mirrors the PyTorch tree, e.g. aten_patch.",
        )
    return path


def include_dirs(patch_dir: Path) -> tuple[Path, ...]:
    """The patch set's ATen, then the torch package's headers."""
    return patch_dir / "aten/src", Path(torch.__file__).parent / "include"


def compile_kernels(
    implementation: Implementation,
    backend: str = "cpu",
    *,
    patch_dir: Path | None = None,
    sanitize: bool = False,
) -> Any:
    """The implementation's library, compiled once a process.

    Args:
        backend: of :func:`mpskit.metal.compile_shader`.
        patch_dir: mirrors the PyTorch tree; None for the package's own patch set.
        sanitize: watch what the kernels do.

    Raises:
        MpskitError: the patch set has no such file, or it does not compile.
    """
    root = patch_dir or default_patch_set_directory()
    return _compile(source_of(implementation, root), root, backend, sanitize)


@lru_cache
def _compile(source: Path, patch_dir: Path, backend: str, sanitize: bool) -> Any:
    return compile_shader(
        source, backend=backend, include_dirs=include_dirs(patch_dir), sanitize=sanitize
    )


def scalar_type_name(dtype: torch.dtype) -> str:
    """ATen's name of a dtype, as its errors give it: ``Long`` for int64."""
    return torch.empty(0, dtype=dtype).type().removeprefix("torch.").removesuffix("Tensor")


def overlaps_differently(input: torch.Tensor, out: torch.Tensor) -> bool:
    """Whether two tensors share memory, but not element by element."""
    same_elements = (
        input.storage_offset() == out.storage_offset() and input.stride() == out.stride()
    )
    shared = input.untyped_storage().data_ptr() == out.untyped_storage().data_ptr()
    return shared and not same_elements

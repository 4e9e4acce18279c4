"""One kernel of one file, launched with arguments written as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpskit.errors import MpskitError
from mpskit.metal import compile_shader
from mpskit.metal.argument_text import parse_argument
from mpskit.metal.errors import LaunchError
from mpskit.metal.launching import BufferParameter, Kernel, Library, ScalarKind

if TYPE_CHECKING:
    import torch

# By the size of the kernel's scalar; int64 and float32 are what is sent anyway.
_CASTS = {
    ScalarKind.SIGNED_INTEGER: {1: "int8", 2: "int16", 4: "int32"},
    ScalarKind.UNSIGNED_INTEGER: {1: "uint8", 2: "int16", 4: "int32"},
    ScalarKind.FLOATING: {2: "fp16"},
    ScalarKind.BOOLEAN: {1: "uint8"},
}
# Of a struct's ints, beside its pointers.
_CAST_OF_MEMBERS = "int32"


@dataclass(frozen=True)
class Launch:
    """What to run, and how.

    Attributes:
        kernel: its host name; None where the file has only one.
        arguments: texts for `mpskit.metal.argument_text.parse_argument`, for buffers 0, 1, ….
        threads: the grid; None for as many as the first tensor has elements.
        threadgroup_lengths: bytes of each ``[[threadgroup(n)]]`` argument, by n.
    """

    file: Path
    kernel: str | None
    arguments: Sequence[str]
    threads: tuple[int, ...] | None
    group_size: tuple[int, ...] | None
    threadgroup_lengths: dict[int, int]
    include_dirs: Sequence[Path]
    backend: str = "cpu"
    sanitize: bool = False
    timeout: float | None = None


@dataclass(frozen=True)
class Result:
    """A tensor argument after the launch, on the CPU."""

    index: int
    name: str
    writable: bool
    tensor: torch.Tensor


def run(launch: Launch) -> list[Result]:
    """Compiles the file, launches the kernel and returns its tensor arguments.

    Raises:
        MpskitError: the file, an argument or the launch is wrong, or the sanitizer has reports.
    """
    library = compile_shader(
        launch.file,
        backend=launch.backend,
        include_dirs=launch.include_dirs,
        sanitize=launch.sanitize,
    )
    if not isinstance(library, Library):
        raise MpskitError(
            f"The {launch.backend} backend does not say what its kernels take.",
            hint="Use --backend cpu or cuda.",
        )
    kernel = _kernel(library, launch)
    parameters = {parameter.index: parameter for parameter in kernel.buffers}
    values: list[Any] = []
    casts: dict[int, str] = {}
    for index, text in enumerate(launch.arguments):
        value, cast = _as_parameter(
            _on_device(parse_argument(text), launch.backend), parameters.get(index)
        )
        values.append(value)
        if cast:
            casts[index] = cast
    kernel(
        *values,
        threads=launch.threads,
        group_size=launch.group_size,
        arg_casts=casts,
        threadgroup_lengths=launch.threadgroup_lengths,
        timeout=launch.timeout,
    )
    return [
        result
        for index, value in enumerate(values)
        if (parameter := parameters.get(index))
        for result in _results(parameter, value)
    ]


def _tensors(value: Any) -> list[torch.Tensor]:
    """The value, or those of its members that are tensors."""
    import torch

    members = value if isinstance(value, tuple) else (value,)
    return [member for member in members if isinstance(member, torch.Tensor)]


def _on_device(value: Any, device: str) -> Any:
    if isinstance(value, tuple):
        return tuple(_on_device(member, device) for member in value)
    return value.to(device) if _tensors(value) else value


def _results(parameter: BufferParameter, value: Any) -> Iterator[Result]:
    is_struct = isinstance(value, tuple)
    for number, tensor in enumerate(_tensors(value)):
        name = f"{parameter.name}[{number}]" if is_struct else parameter.name
        yield Result(parameter.index, name, is_struct or parameter.writable, tensor.cpu())


def find(results: Sequence[Result], argument: str) -> Result:
    """The result that a name or an index means."""
    for result in results:
        if argument in (result.name, str(result.index)):
            return result
    names = ", ".join(result.name for result in results) or "none"
    raise MpskitError(f"There is no tensor argument {argument!r}.", hint=f"There are: {names}.")


def _kernel(library: Library, launch: Launch) -> Kernel:
    names = dir(library)
    if launch.kernel is None:
        if len(names) == 1:
            return getattr(library, names[0])  # type: ignore[no-any-return]
        listed = ", ".join(names) or "none"
        raise MpskitError(
            f"{launch.file} has {len(names)} kernels.", hint=f"Choose by --kernel: {listed}."
        )
    try:
        return getattr(library, launch.kernel)  # type: ignore[no-any-return]
    except AttributeError as error:
        raise LaunchError(str(error), hint=f"It has: {', '.join(names) or 'none'}.") from None


def _as_parameter(value: Any, parameter: BufferParameter | None) -> tuple[Any, str | None]:
    """Numbers as the kernel's parameter takes them, and the cast that sends them so."""
    if _tensors(value):
        return value, _CAST_OF_MEMBERS if isinstance(value, tuple) else None
    if parameter is None:
        return value, None
    numbers = value if isinstance(value, tuple) else (value,)
    if parameter.scalar is ScalarKind.FLOATING:
        numbers = tuple(map(float, numbers))
    scalar_bytes = parameter.size // len(numbers) if parameter.reference else parameter.size
    return numbers, _CASTS.get(parameter.scalar, {}).get(scalar_bytes)

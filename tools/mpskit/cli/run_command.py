"""``mpskit run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpskit.cli.output import show
from mpskit.errors import MpskitError

if TYPE_CHECKING:
    from mpskit.metal.single_launch import Result

_SHOWN = 8


@click.command("run")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.metal")
@click.option("--kernel", metavar="NAME", help="Host name; needed where the file has several.")
@click.option(
    "--threads",
    metavar="SIZE",
    help="The grid, as 1024 or 64x8; as many as the first tensor has elements by default.",
)
@click.option("--group-size", metavar="SIZE", help="The threadgroup, as 256 or 32x8.")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="VALUE",
    help="One for each buffer, in order: 3, 2.5, 1,2,3, zeros:float32:1024, randn:half:4x8, "
    "arange:int32:16, or x.npy.",
)
@click.option(
    "--threadgroup",
    "lengths",
    multiple=True,
    type=int,
    metavar="BYTES",
    help="Length of each [[threadgroup(n)]] argument, in order.",
)
@click.option(
    "--out", "outs", multiple=True, metavar="ARG=FILE.npy", help="Write a tensor argument there."
)
@click.option(
    "--include", "include_dirs", multiple=True, type=click.Path(path_type=Path), metavar="DIR",
    help="Searched for #include.",
)  # fmt: skip
@click.option(
    "--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True,
    help="What runs it.",
)  # fmt: skip
@click.option("--sanitize", is_flag=True, help="Watch every access, barrier and simd operation.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Stop the kernel after this time.")
def command(
    file: Path,
    kernel: str | None,
    threads: str | None,
    group_size: str | None,
    arguments: tuple[str, ...],
    lengths: tuple[int, ...],
    outs: tuple[str, ...],
    include_dirs: tuple[Path, ...],
    backend: str,
    sanitize: bool,
    timeout: float | None,
) -> None:
    """Launch one kernel of a .metal file and print what it wrote.

    Exits with 1 where the sanitizer has a report.

    \b
    mpskit run scale.metal --kernel scale --arg randn:float32:4x8 --arg zeros:float32:4x8 \\
        --arg 2.5 --threads 32 --group-size 32 --sanitize
    """
    from mpskit.metal import single_launch
    from mpskit.metal.argument_text import parse_size, save

    targets = [_target(out) for out in outs]
    results = single_launch.run(
        single_launch.Launch(
            file=file,
            kernel=kernel,
            arguments=arguments,
            threads=parse_size(threads) if threads else None,
            group_size=parse_size(group_size) if group_size else None,
            threadgroup_lengths=dict(enumerate(lengths)),
            include_dirs=include_dirs,
            backend=backend,
            sanitize=sanitize,
            timeout=timeout,
        )
    )
    for argument, path in targets:
        save(path, single_launch.find(results, argument).tensor)
    for result in results:
        if result.writable:
            show(_line(result))
    for argument, path in targets:
        show(f"{argument} written to {path}")
    if sanitize:
        show("The sanitizer has no report.")


def _target(out: str) -> tuple[str, Path]:
    argument, _, path = out.partition("=")
    if not argument or not path.endswith(".npy"):
        raise MpskitError(f"--out {out}: no argument and .npy file.", hint="Write out=result.npy.")
    return argument, Path(path)


def _line(result: Result) -> str:
    tensor = result.tensor
    values = [f"{value:g}" for value in tensor.flatten()[:_SHOWN].tolist()]
    if tensor.numel() > _SHOWN:
        values.append("…")
    shape = "x".join(map(str, tensor.shape))
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{result.name}: {dtype} {shape}: {' '.join(values)}"

"""``mpskit skeleton``."""

from __future__ import annotations

from pathlib import Path

import click

from mpskit.checkout.skeleton import make_skeleton
from mpskit.cli.options import json_option
from mpskit.cli.output import progress, show, show_json


@click.command("skeleton")
@click.argument("directory", type=click.Path(path_type=Path))
@json_option
def command(directory: Path, as_json: bool) -> None:
    """Make DIRECTORY, a small PyTorch checkout, from the installed torch wheel.

    It has what the wheel carries, each file at its place in the source tree, and a stand-in for
    Activation.mm: enough to apply patches, generate code and compile host code.
    """
    with progress("writing files") as update:
        skeleton = make_skeleton(directory, update)
    if as_json:
        show_json(
            {
                "directory": str(skeleton.directory),
                "torch": skeleton.torch_version,
                "commit": skeleton.commit,
                "files": skeleton.files,
            }
        )
        return
    show(f"{skeleton.directory}: {skeleton.files} files of PyTorch {skeleton.torch_version}")
    show(f"  next: mpskit apply {skeleton.directory}", "dim")

"""Arguments and options that several commands have, so that they mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mpskit.patching import PatchSet, load_patch_set

checkout_argument = click.argument("checkout", type=click.Path(path_type=Path), default=".")

patch_set_option = click.option(
    "--patch-set",
    type=click.Path(path_type=Path),
    metavar="DIR",
    envvar="MPSKIT_PATCH_SET",
    show_envvar=True,
    help="Directory with a series.toml; mpskit's own patch set by default.",
)

_patch_option = click.option(
    "--patch",
    "patches",
    metavar="NAME",
    multiple=True,
    help="Only this patch of the series; may be given several times.",
)

_up_to_option = click.option(
    "--up-to", metavar="NAME", help="Only the patches of the series up to and with this one."
)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--patch-set``, ``--patch`` and ``--up-to``; see ``selected``."""
    return patch_set_option(_patch_option(_up_to_option(command)))


def selected(patch_set: Path | None, patches: tuple[str, ...], up_to: str | None) -> PatchSet:
    """The patch set that these options name, with the patches that they pick."""
    return load_patch_set(patch_set).select(patches, up_to)


allow_old_base_option = click.option(
    "--allow-old-base",
    is_flag=True,
    help="Go on where the base lacks files only because it is older than they are.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")

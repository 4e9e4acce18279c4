"""``mpskit diff``."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import click

from mpskit.checkout.checkout import Checkout
from mpskit.cli.options import (
    allow_old_base_option,
    checkout_argument,
    json_option,
    selected,
    selection_options,
)
from mpskit.cli.output import show_json
from mpskit.patching import difference


@click.command("diff")
@checkout_argument
@selection_options
@click.option("--stat", is_flag=True, help="Only count changed lines, file by file.")
@allow_old_base_option
@json_option
def command(
    checkout: Path,
    patch_set: Path | None,
    patches: tuple[str, ...],
    up_to: str | None,
    stat: bool,
    allow_old_base: bool,
    as_json: bool,
) -> None:
    """Show what the patch set changes in the PyTorch checkout CHECKOUT, or has changed.

    Changes nothing. `--json` counts changed lines, as --stat does.
    """
    opened, loaded = Checkout.open(checkout), selected(patch_set, patches, up_to)
    with difference(opened, loaded, allow_old_base=allow_old_base) as found:
        if as_json:
            show_json([dataclasses.asdict(file) for file in found.files()])
        else:
            click.echo(found.text(stat=stat, color=sys.stdout.isatty()), nl=False)

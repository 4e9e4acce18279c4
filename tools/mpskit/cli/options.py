"""Arguments and options that several commands have, so that they mean the same everywhere."""

from __future__ import annotations

from pathlib import Path

import click

checkout_argument = click.argument("checkout", type=click.Path(path_type=Path), default=".")

patch_set_option = click.option(
    "--patch-set",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory with a series.toml; mpskit's own patch set by default.",
)

allow_old_base_option = click.option(
    "--allow-old-base",
    is_flag=True,
    help="Go on where the base lacks files only because it is older than they are.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")

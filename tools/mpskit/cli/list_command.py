"""``mpskit list``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from mpskit.cli.options import json_option, patch_set_option
from mpskit.cli.output import show, show_json
from mpskit.patching import Patch, PatchSet, load_patch_set
from mpskit.patching.edits import Edit


@click.command("list")
@patch_set_option
@json_option
def command(patch_set: Path | None, as_json: bool) -> None:
    """List the patches of the patch set and what each one changes."""
    loaded = load_patch_set(patch_set)
    if as_json:
        show_json(_as_data(loaded))
        return
    for patch in loaded.patches:
        _show_patch(patch)


def _show_patch(patch: Patch) -> None:
    show(f"{patch.name}: {patch.title}", "bold")
    for file in patch.files:
        show(f"  add     {file.path}")
    _show_edits(patch.common_edits)
    for layout in patch.layouts:
        show(f"  where {layout.path} has {layout.defines} ({layout.name}):")
        for path in layout.replaces:
            show(f"  replace {path}")
        _show_edits(layout.edits)
    for use in patch.kernels:
        show(f"  kernel  {use.name}: {use.when}", "dim")
    for requirement in patch.requires:
        since = f" (PyTorch {requirement.since} and newer)" if requirement.since else ""
        show(f"  needs   {requirement.path}{since}", "dim")
    for expectation in patch.expects:
        for key, kernel in expectation.dispatch.items():
            show(f"  needs   {expectation.function} dispatched to {kernel} on {key}", "dim")


def _show_edits(edits: Iterable[Edit]) -> None:
    for edit in edits:
        show(f"  edit    {edit.path}: {edit.describe()}")


def _edits_as_data(edits: Iterable[Edit]) -> list[dict[str, str]]:
    return [{"kind": edit.kind, "path": edit.path, "what": edit.describe()} for edit in edits]


def _as_data(patch_set: PatchSet) -> dict[str, Any]:
    return {
        "directory": str(patch_set.directory),
        "name": patch_set.name,
        "digest": patch_set.digest,
        "patches": [
            {
                "name": patch.name,
                "title": patch.title,
                "files": [file.path for file in patch.files],
                "edits": _edits_as_data(patch.common_edits),
                "layouts": [
                    {
                        "name": layout.name,
                        "about": layout.about,
                        "path": layout.path,
                        "defines": layout.defines,
                        "replaces": list(layout.replaces),
                        "edits": _edits_as_data(layout.edits),
                    }
                    for layout in patch.layouts
                ],
                "kernels": [dataclasses.asdict(use) for use in patch.kernels],
                "requires": [dataclasses.asdict(item) for item in patch.requires],
                "expects": [
                    {"function": item.function, "dispatch": item.dispatch} for item in patch.expects
                ],
            }
            for patch in patch_set.patches
        ],
    }

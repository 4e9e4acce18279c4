"""``mpskit check``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from mpskit.cli.options import json_option, patch_set_option
from mpskit.cli.output import show_json
from mpskit.errors import MpskitError
from mpskit.metal import DEFAULT_METAL_VERSION
from mpskit.metal.checking import Checked, check
from mpskit.metal.errors import Diagnostic
from mpskit.metal.lint import RULES

_STANDARD_INPUT = Path("-")
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


@click.command("check")
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, metavar="FILE…")
@click.option(
    "--include",
    "include_dirs",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    metavar="DIR",
    help="Search DIR for #include before torch's headers. May be repeated.",
)
@click.option(
    "--metal-version",
    type=int,
    default=DEFAULT_METAL_VERSION,
    show_default=True,
    metavar="N",
    help="__METAL_VERSION__: 310, 320, 400, …",
)
@patch_set_option
@json_option
def command(
    files: tuple[Path, ...],
    include_dirs: tuple[Path, ...],
    metal_version: int,
    patch_set: Path | None,
    as_json: bool,
) -> int:
    """Say what is wrong with the Metal source FILEs: lint and compile them. Runs nothing.

    With --patch-set, its headers are found, and without a FILE, all of its own are checked.

    A rule's name stands in brackets behind its message; `// mpskit: allow(rule)` on the line, or
    above it, silences it. Exits with 1 where there is an error, with 0 otherwise. FILE may be -,
    for standard input; messages call that program_source.
    """
    if patch_set is not None:
        include_dirs = (*include_dirs, patch_set / "aten/src")
        files = files or _metal_files(patch_set)
    if not files:
        raise click.UsageError("Name a FILE, or a patch set with --patch-set DIR.")
    for file in files:
        if file != _STANDARD_INPUT:
            _require(file)
    checked = [
        (file, check(_source(file), include_dirs=include_dirs, metal_version=metal_version))
        for file in files
    ]
    if as_json:
        show_json([_as_data(file, found) for file, found in checked])
    else:
        for _, found in checked:
            _show(found)
        click.echo(_summary([found for _, found in checked]))
    return 1 if any(found.errors for _, found in checked) else 0


def _metal_files(directory: Path) -> tuple[Path, ...]:
    """The Metal sources of a patch set."""
    from mpskit.patching import load_patch_set

    files = [file.path for patch in load_patch_set(directory).patches for file in patch.files]
    return tuple(directory / path for path in files if path.endswith(".metal"))


def _source(file: Path) -> Path | str:
    if file != _STANDARD_INPUT:
        return file
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise MpskitError(
            f"Standard input is no text: {error.reason} at byte {error.start}.",
            hint="Give Metal source in UTF-8.",
        ) from None


def _require(file: Path) -> None:
    if file.is_dir():
        inside = sorted(file.glob("*.metal"))
        hint = f"Try: mpskit check {file}/*.metal" if inside else "Give .metal files."
        raise MpskitError(f"{file} is a directory.", hint=hint)
    if not file.exists():
        near = (
            sorted(p.name for p in file.parent.glob("*.metal"))[:5] if file.parent.is_dir() else []
        )
        hint = f"{file.parent} has {', '.join(near)}." if near else "Check the path."
        raise MpskitError(f"There is no file {file}.", hint=hint)


def _show(found: Checked) -> None:
    explained: set[str] = set()
    for diagnostic in found.diagnostics:
        where = diagnostic.location
        rule = f" [{diagnostic.rule}]" if diagnostic.rule else ""
        kind = click.style(f"{diagnostic.severity}:", fg=_COLOURS[diagnostic.severity], bold=True)
        click.echo(f"{click.style(str(where), bold=True)}: {kind} {diagnostic.message}{rule}")
        _show_line(diagnostic, found)
        if diagnostic.rule in RULES and diagnostic.rule not in explained:
            explained.add(diagnostic.rule)
            click.echo(f"    {RULES[diagnostic.rule].explanation}")


def _show_line(diagnostic: Diagnostic, found: Checked) -> None:
    """The source line and a caret below the column; tabs stay, so that they line up."""
    where = diagnostic.location
    line = found.lines.line(where.file, where.line)
    if line is None or not line.strip():
        return
    margin = "".join("\t" if c == "\t" else " " for c in line[: where.column - 1])
    click.echo(f"{where.line:>6} | {line}")
    click.echo(f"       | {margin}{click.style('^', fg='green', bold=True)}")


def _summary(checked: list[Checked]) -> str:
    counts = (
        (sum(found.errors for found in checked), "error"),
        (sum(found.warnings for found in checked), "warning"),
        (len(checked), "file"),
    )
    errors, warnings, files = (f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts)
    return f"{errors}, {warnings} in {files}"


def _as_data(file: Path, found: Checked) -> dict[str, Any]:
    return {
        "file": str(file),
        "errors": found.errors,
        "warnings": found.warnings,
        "diagnostics": [
            {
                "file": d.location.file,
                "line": d.location.line,
                "column": d.location.column,
                "severity": d.severity,
                "rule": d.rule or None,
                "message": d.message,
                "explanation": RULES[d.rule].explanation if d.rule in RULES else None,
            }
            for d in found.diagnostics
        ],
    }

"""All that can be said of Metal source without running it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mpskit.metal import cache
from mpskit.metal.codegen.translate import package_digest
from mpskit.metal.errors import CompileError, Diagnostic, Location
from mpskit.metal.frontend.function_constants import UNSET_PRAGMA
from mpskit.metal.frontend.loading import load, system_dirs
from mpskit.metal.frontend.parsing import parse
from mpskit.metal.frontend.sources import SourceLines
from mpskit.metal.host_compiler import find_compiler
from mpskit.metal.lint import RULES, is_allowed, lint


def lint_embedded(embedded: str, *, metal_version: int) -> list[Diagnostic]:
    """The lint's findings in an embedded text, from the cache where they are there.

    Raises:
        CompileError: the text cannot be preprocessed or parsed.
    """
    compiler = find_compiler()
    system = [str(folder) for folder in system_dirs()]
    parts = [embedded, str(metal_version), *compiler.command, compiler.version, *system]

    def build(file: Path) -> None:
        program = parse(embedded, compiler, metal_version=metal_version)
        found = lint(program, SourceLines(embedded), system_dirs=system)
        file.write_text(json.dumps([_as_row(diagnostic) for diagnostic in found]))

    name = f"lint-{cache.key([*parts, package_digest()])}.json"
    return [_from_row(row) for row in json.loads(cache.entry(name, build).read_text())]


def _as_row(diagnostic: Diagnostic) -> list[str | int]:
    where = diagnostic.location
    return [where.file, where.line, where.column, diagnostic.severity, diagnostic.message,
            diagnostic.rule]  # fmt: skip


def _from_row(row: list[str | int]) -> Diagnostic:
    file, line, column, severity, message, rule = row
    where = Location(str(file), int(line), int(column))
    return Diagnostic(where, str(severity), str(message), str(rule))


def warnings_or_error(embedded: str, *, metal_version: int) -> tuple[Diagnostic, ...]:
    """The lint's warnings.

    Raises:
        CompileError: with the lint's errors; the hint says why the first is one.
    """
    found = lint_embedded(embedded, metal_version=metal_version)
    if errors := [d for d in found if d.severity == "error"]:
        rule = RULES.get(errors[0].rule)
        raise CompileError(errors, hint=rule.explanation if rule else None)
    return tuple(found)


@dataclass(frozen=True)
class Checked:
    """What is wrong with one file, by place, and its lines."""

    diagnostics: tuple[Diagnostic, ...]
    lines: SourceLines

    @property
    def errors(self) -> int:
        return sum(d.severity == "error" for d in self.diagnostics)

    @property
    def warnings(self) -> int:
        return sum(d.severity == "warning" for d in self.diagnostics)


def check(source: str | Path, *, include_dirs: Sequence[str | Path], metal_version: int) -> Checked:
    """Runs front end, lint and compiler.

    A compiler's error on a line that the lint has an error for is left out, since it says the same.

    Raises:
        MpskitError: the file cannot be read, or there is no compiler.
    """
    try:
        embedded = UNSET_PRAGMA + load(source, include_dirs)
    except CompileError as error:
        return Checked(error.diagnostics, SourceLines(""))
    lines = SourceLines(embedded)
    try:
        found = lint_embedded(embedded, metal_version=metal_version)
    except CompileError as error:
        return Checked(error.diagnostics, lines)
    refused = {(d.location.file, d.location.line) for d in found if d.severity == "error"}
    compiled = _compiled(embedded, lines, refused, metal_version)
    return Checked(tuple(_by_place([*found, *compiled])), lines)


def _by_place(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Sorted by file and line, each note behind the message that it belongs to."""
    groups: list[list[Diagnostic]] = []
    for diagnostic in diagnostics:
        if diagnostic.severity == "note" and groups:
            groups[-1].append(diagnostic)
        else:
            groups.append([diagnostic])
    groups.sort(key=lambda group: group[0].location)
    return [diagnostic for group in groups for diagnostic in group]


def _compiled(
    embedded: str, lines: SourceLines, refused: set[tuple[str, int]], metal_version: int
) -> list[Diagnostic]:
    from mpskit.metal.cpu.library import compile_library

    try:
        compile_library(embedded, metal_version=metal_version)
    except CompileError as error:
        kept: list[Diagnostic] = []
        is_kept = True
        for diagnostic in error.diagnostics:
            where = diagnostic.location
            if diagnostic.severity == "error":  # its notes share its fate
                is_kept = (where.file, where.line) not in refused
                is_kept = is_kept and not is_allowed(diagnostic.rule, where, lines)
            if is_kept:
                kept.append(diagnostic)
        return kept
    return []

"""Faults of Metal source that are seen before any compiler runs.

Errors are what Apple's compiler refuses, warnings what compiles and is likely wrong. Every message
ends in its rule's name in brackets; ``// mpskit: allow(rule)`` on that line, or alone on the line
above, silences it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from mpskit.metal.errors import CompileError, Diagnostic, Location
from mpskit.metal.frontend.kernels import read_kernels
from mpskit.metal.frontend.sources import SourceLines
from mpskit.metal.frontend.structure import Program
from mpskit.metal.lint import barriers, calls, divergence, memory, numerics, spaces, words
from mpskit.metal.lint.rules import RULES, Check, Rule

__all__ = ["RULES", "Rule", "is_allowed", "lint"]

_CHECKS: tuple[Check, ...] = (
    words.refused_words,
    words.graphics,
    words.tensors,
    words.program_scope_variables,
    memory.missing_address_spaces,
    spaces.mismatched_spaces,
    memory.writes_to_constant,
    memory.variable_length_arrays,
    calls.nameless_kernels,
    calls.kernel_calls,
    calls.recursion,
    numerics.fast_math,
    divergence.divergent_simd,
    numerics.index_overflow,
    barriers.missing_barriers,
)
_MAX_FINDINGS = 200  # of one check: nobody reads more
_ALLOW = re.compile(r"//.*?\bmpskit:\s*allow\(([\w\s,-]*)\)")


def lint(
    program: Program, lines: SourceLines, *, system_dirs: Sequence[str] = ()
) -> list[Diagnostic]:
    """All findings in a program, by place.

    Args:
        program: parsed.
        lines: of the text that the program was preprocessed from, for comments and columns.
        system_dirs: folders whose files get no warnings, only errors.
    """
    found: set[Diagnostic] = set()
    for check in _CHECKS:
        for finding in islice(check(program), _MAX_FINDINGS):
            where = lines.original(*program.source.place(program.tokens[finding.index].start))
            severity = RULES[finding.rule].severity
            if severity == "warning" and where.file.startswith(tuple(system_dirs)):
                continue
            if not is_allowed(finding.rule, where, lines):
                found.add(Diagnostic(where, severity, finding.message, finding.rule))
    try:
        read_kernels(program)
    except CompileError as error:
        said = {(d.location.file, d.location.line, d.rule) for d in found}
        found.update(
            d
            for d in error.diagnostics
            if not d.rule or (d.location.file, d.location.line, d.rule) not in said
        )
    return sorted(found, key=lambda d: (d.location.file, d.location.line, d.location.column))


def is_allowed(rule: str, where: Location, lines: SourceLines) -> bool:
    """Whether a comment at a place, or alone on the line above, silences a rule."""
    own, above = (lines.line(where.file, where.line - back) or "" for back in (0, 1))
    comments = [own, above] if above.lstrip().startswith("//") else [own]
    return any(
        rule in re.split(r"[\s,]+", match[1])
        for line in comments
        for match in _ALLOW.finditer(line)
    )

"""Markdown text that more than one part of mpskit writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[object]], *, left: Collection[int] = (0,)
) -> str:
    """A table; the columns whose indices are in ``left`` are aligned left, the others right."""
    rule = ["---" if i in left else "---:" for i in range(len(head))]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in [head, rule, *rows])

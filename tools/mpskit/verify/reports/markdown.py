"""A run as Markdown, for a pull request or an issue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mpskit.markdown import markdown_table
from mpskit.verify.reports.result import Failure, SuiteResult
from mpskit.verify.reports.tables import (
    Table,
    accuracy_table,
    facts,
    launches_table,
    layouts_table,
    tests_table,
)

# What begins or ends markup inside a line: emphasis, code, links, HTML, entities, formulas.
_MARKUP = re.compile(r"[\\|*_`<&~$]|\](?=[(\[])")


def markdown(result: SuiteResult) -> str:
    """The whole report."""
    return "\n\n".join(_parts(result)) + "\n"


def _parts(result: SuiteResult) -> Iterator[str]:
    yield f"# OpInfo suite: {'passed' if result.ok else 'failed'}"
    yield "\n".join(f"- {name}: {_text(value)}" for name, value in facts(result))
    for failure in result.failures:
        yield from _failure(failure)
    for name, op in result.ops.items():
        yield f"## {_text(name)}"
        for table in (accuracy_table(op), layouts_table(op), launches_table(op.launches)):
            yield from _table(table, "###")
    yield from _table(tests_table(result), "##")
    yield from _table(launches_table(result.launches, result.kernels), "##")
    if result.patch_files:
        yield "## Sources that were tested"
        head = ("file", "SHA-256")
        rows = [(f"`{path}`", f"`{digest}`") for path, digest in result.patch_files.items()]
        yield markdown_table(head, rows, left=(0, 1))


def _failure(failure: Failure) -> Iterator[str]:
    yield f"## Failed: `{failure.test}`"
    yield _block(failure.message.strip())
    yield "Again:"
    yield _block(failure.reproduce)


def _table(table: Table, level: str) -> Iterator[str]:
    if table.rows:
        yield f"{level} {table.title}"
        yield markdown_table(table.head, map(_cells, table.rows), left=table.words)


def _cells(row: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(_text, row))


def _text(value: str) -> str:
    """A text in which nothing is markup; in particular, none that ends a table's cell."""
    return _MARKUP.sub(r"\\\g<0>", value).replace("\n", " ")


def _block(text: str) -> str:
    """A block of code, within a fence that the text does not close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"

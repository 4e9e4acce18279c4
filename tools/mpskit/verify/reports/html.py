"""A run as one web page that needs nothing besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from math import isfinite
from pathlib import Path

from mpskit.verify.reports.result import Failure, OpResult, SuiteResult, WorstError
from mpskit.verify.reports.tables import (
    Table,
    accuracy_table,
    facts,
    launches_table,
    layouts_table,
    tests_table,
    ulp,
)

_STYLE = Path(__file__).with_name("report.css")


def html(result: SuiteResult) -> str:
    """The whole page."""
    outcome = "passed" if result.ok else "failed"
    title = f"OpInfo suite: {outcome}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{_STYLE.read_text()}</style>\n</head>\n<body>\n"
        + "\n".join(_body(result, outcome))
        + "\n</body>\n</html>\n"
    )


def _body(result: SuiteResult, outcome: str) -> Iterator[str]:
    yield f'<header><h1>OpInfo suite <span class="outcome {outcome}">{outcome}</span></h1>'
    yield _facts(facts(result))
    yield "</header>\n<main>"
    for failure in result.failures:
        yield _failure(failure)
    for name, op in result.ops.items():
        yield f"<section><h2>{escape(name)}</h2>"
        yield _errors(op)
        for table in (accuracy_table(op), layouts_table(op), launches_table(op.launches)):
            yield _table(table)
        yield _worst_samples(op)
        yield "</section>"
    yield "<section><h2>The whole run</h2>"
    yield _table(tests_table(result))
    yield _table(launches_table(result.launches, result.kernels))
    yield "</section>"
    yield _sources(result)
    yield "</main>"


def _facts(pairs: Iterable[tuple[str, str]]) -> str:
    items = "".join(f"<div><dt>{escape(n)}</dt><dd>{escape(v)}</dd></div>" for n, v in pairs)
    return f'<dl class="facts">{items}</dl>'


def _failure(failure: Failure) -> str:
    return (
        f'<section class="failure"><h2>Failed: {escape(failure.test)}</h2>'
        f"<pre>{escape(failure.message.strip())}</pre>"
        f"<p>Run that sample again:</p>{_command(failure.reproduce)}</section>"
    )


def _command(text: str) -> str:
    return f'<pre class="command">{escape(text)}</pre>'


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    return (
        f"<figure><figcaption>{escape(table.title)}</figcaption>"
        f'<div class="wide"><table><thead>{_row(table, table.head, "th")}</thead>'
        f"<tbody>{''.join(_row(table, row, 'td') for row in table.rows)}</tbody>"
        "</table></div></figure>"
    )


def _row(table: Table, cells: Iterable[str], tag: str) -> str:
    parts = [
        f"<{tag}{'' if column in table.words else ' class=number'}>{escape(cell)}</{tag}>"
        for column, cell in enumerate(cells)
    ]
    return f"<tr>{''.join(parts)}</tr>"


def _errors(op: OpResult) -> str:
    """Bars of the kernels' largest error and of the CPU kernel's, by dtype."""
    pairs = [
        (dtype, who, kind, error)
        for dtype in op.samples
        for who, kind, errors in (("kernels", "ours", op.worst), ("CPU", "cpu", op.cpu_worst))
        if (error := errors.get(dtype))
    ]
    longest = max((error.ulp for *_, error in pairs if isfinite(error.ulp)), default=0) or 1
    bars = "".join(
        f"<tr><th>{escape(dtype)}</th><th>{who}</th>"
        f'<td class=bar><span class={kind} style="width:{_share(error, longest):.1f}%"></span></td>'
        f"<td class=number>{ulp(error)}</td></tr>"
        for dtype, who, kind, error in pairs
    )
    return (
        '<figure><figcaption>Largest error, in ULP</figcaption><table class="bars">'
        f"<tbody>{bars}</tbody></table></figure>"
        if bars
        else ""
    )


def _share(error: WorstError, longest: float) -> float:
    return 100 * min(1.0, error.ulp / longest)


def _worst_samples(op: OpResult) -> str:
    commands = "".join(
        f"<dt>{escape(dtype)}: {escape(error.sample)}</dt><dd>{_command(error.reproduce)}</dd>"
        for dtype, error in op.worst.items()
        if error.reproduce
    )
    return (
        f"<details><summary>Run the worst samples again</summary><dl>{commands}</dl></details>"
        if commands
        else ""
    )


def _sources(result: SuiteResult) -> str:
    if not result.patch_files:
        return ""
    rows = (*result.patch_files.items(),)
    table = Table("Sources that were tested", ("file", "SHA-256"), rows, words=(0, 1))
    return f"<section>{_table(table)}</section>"

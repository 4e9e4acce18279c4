"""Prints what the tests of this folder find out, added up over all processes that ran them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

FAULTS = "faults: "
BASE = "base: "
OPERATIONS = ("status", "dry run", "apply", "again", "update", "refresh", "revert")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    _show_faults(terminalreporter)
    _show_bases(terminalreporter)


def _properties(reporter: pytest.TerminalReporter, prefix: str) -> Iterator[tuple[str, object]]:
    """Name and value of each property of a passed test that starts with ``prefix``."""
    for report in reporter.stats.get("passed", []):
        for name, value in getattr(report, "user_properties", ()):
            if name.startswith(prefix):
                yield name.removeprefix(prefix), value


def _show_faults(reporter: pytest.TerminalReporter) -> None:
    counts = {kind: int(str(count)) for kind, count in _properties(reporter, FAULTS)}
    if not counts:
        return
    reporter.section("injected faults")
    for kind, count in sorted(counts.items()):
        reporter.write_line(f"{count:5}  {kind}")
    reporter.write_line(f"{sum(counts.values()):5}  in all, none lost anything")


def _show_bases(reporter: pytest.TerminalReporter) -> None:
    rows = [(name, str(value).split("\t")) for name, value in _properties(reporter, BASE)]
    if not rows:
        return
    reporter.section("bases")
    reporter.write_line("".join(f"{name:<11}" for name in OPERATIONS) + "base")
    for base, outcomes in sorted(rows):
        reporter.write_line("".join(f"{outcome:<11}" for outcome in outcomes) + base)

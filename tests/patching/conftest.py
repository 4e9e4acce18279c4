"""Adds up the faults that the tests inject, over all processes that ran them, and says so."""

from __future__ import annotations

import pytest

_PREFIX = "faults: "


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = {
        name.removeprefix(_PREFIX): int(count)
        for report in terminalreporter.stats.get("passed", [])
        for name, count in getattr(report, "user_properties", ())
        if name.startswith(_PREFIX)
    }
    if counts:
        terminalreporter.section("injected faults")
        for kind, count in sorted(counts.items()):
            terminalreporter.write_line(f"{count:5}  {kind}")
        terminalreporter.write_line(f"{sum(counts.values()):5}  in all, none lost anything")

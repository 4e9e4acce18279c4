"""Marks that depend on the machine, and the conformance suite's count."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_runtest_setup(item: pytest.Item) -> None:
    import torch

    if (mark := item.get_closest_marker("requires_mps")) and not torch.backends.mps.is_available():
        pytest.skip(f"needs a Mac's GPU; here {mark.args[0]}")
    if (mark := item.get_closest_marker("requires_cuda")) and not torch.cuda.is_available():
        pytest.skip(f"needs an NVIDIA GPU; here {mark.args[0]}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if mark := item.get_closest_marker("conformance"):
            item.user_properties.append(("conformance", mark.args[0]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the conformance suite passed and failed, by the specification's section."""
    tests: Counter[tuple[str, str]] = Counter()
    values: Counter[str] = Counter()
    for outcome in ("passed", "failed", "error", "xfailed"):
        for report in terminalreporter.stats.get(outcome, []):
            section = dict(report.user_properties).get("conformance")
            if section is not None:
                tests[section, outcome] += 1
                values[section] += sum(
                    n for name, n in report.user_properties if name == "conformance values"
                )
    if not tests:
        return
    terminalreporter.section("Metal Shading Language conformance, by section")
    for section in sorted(values, key=_section_number):
        outcomes = ", ".join(
            f"{number} {outcome}" for (s, outcome), number in sorted(tests.items()) if s == section
        )
        terminalreporter.line(f"{section:<44} {values[section]:>9,} values: {outcomes}")
    passed = sum(number for (_, outcome), number in tests.items() if outcome == "passed")
    terminalreporter.line(f"{'all':<44} {values.total():>9,} values: {passed} passed")


def _section_number(section: str) -> list[int]:
    return [int(part) for part in section.split()[0].split(".")]

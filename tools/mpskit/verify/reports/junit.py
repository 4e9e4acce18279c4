"""A run as JUnit's XML, which CI systems show."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

from mpskit.verify.reports.result import Failure, SuiteResult

# What XML 1.0 cannot hold, even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(result: SuiteResult) -> str:
    """The run as one test suite; a failure's text ends with the line that runs it again."""
    broken = _broken(result)
    outcomes = Counter(case.outcome for case in result.cases)
    suite = ElementTree.Element(
        "testsuite",
        name=f"mpskit test, {result.backend} backend",
        tests=str(len(result.cases) + len(broken)),
        failures=str(outcomes["failed"]),
        errors=str(len(broken)),
        skipped=str(outcomes["skipped"]),
        time=f"{result.seconds:.3f}",
    )
    again = {failure.test: failure.reproduce for failure in result.failures}
    for case in result.cases:
        file, _, name = case.test.partition("::")
        group, _, test = name.partition("::")
        element = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"{file.removesuffix('.py').replace('/', '.')}.{group}",
            name=test or name or file,
            time=f"{case.seconds:.3f}",
        )
        if case.outcome == "failed":
            _add(element, "failure", case.message, f"again: {again.get(case.test, '')}")
        elif case.outcome == "skipped":
            _add(element, "skipped", case.message)
    for failure in broken:
        element = ElementTree.SubElement(suite, "testcase", classname=failure.test, name="collect")
        _add(element, "error", failure.message, f"again: {failure.reproduce}")
    ElementTree.indent(suite)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _broken(result: SuiteResult) -> list[Failure]:
    """What failed before there was a test, such as a file that cannot be imported."""
    tests = {case.test for case in result.cases}
    return [failure for failure in result.failures if failure.test not in tests]


def _add(element: ElementTree.Element, kind: str, message: str, more: str = "") -> None:
    said = _NOT_IN_XML.sub("?", message.strip())
    first_line = said.partition("\n")[0]
    child = ElementTree.SubElement(element, kind, message=first_line)
    child.text = _NOT_IN_XML.sub("?", f"{said}\n{more}".strip())

"""Reports of a run: what they say, and that odd texts do not break them."""

from __future__ import annotations

import math
import os
import stat
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mpskit.errors import MpskitError
from mpskit.verify.reports import check_report_file, write_junit, write_report
from mpskit.verify.reports.html import html
from mpskit.verify.reports.junit import junit
from mpskit.verify.reports.markdown import markdown
from mpskit.verify.reports.result import (
    Case,
    Failure,
    OpResult,
    Outcomes,
    SuiteResult,
    WorstError,
)

EVIL = '</script><b a="x">|`*_\\ & ```'
FAILURE = Failure("test_ops.py::TestX::test_y", f"wrong: {EVIL}", "mpskit test --only 'X::y#3'")
SEEN = OpResult(
    samples={"float32": 40, "float16": 7},
    input_layouts={"contiguous": 30, "expanded": 17},
    output_layouts={"contiguous": 40, "permuted": 7},
    launches={"log_softmax_float_u32": 30, "log_softmax_half_u64": 2},
    worst={
        "float32": WorstError(1.5, EVIL, "mpskit test --only 'X::z#7'"),
        "float16": WorstError(math.inf, "float16[3]"),
    },
    cpu_worst={"float32": WorstError(3.0, "float32[2, 3]")},
)
RESULT = SuiteResult(
    backend="cpu",
    seconds=12.34,
    tests={"int8": Outcomes(1), "float32": Outcomes(3, 1, 2)},
    ops={"log_softmax": SEEN, "square": replace(SEEN, launches={"square_float": 4})},
    launches={"log_softmax_float_u32": 30, "log_softmax_half_u64": 2, "square_float": 4},
    kernels=("log_softmax", "log_softmax_row", "square"),
    failures=(FAILURE,),
    closing_line="1 failed",
    patch_files={"aten/LogSoftmax.metal": "abc123"},
    torch="2.13.0",
    date="2026-12-01",
    cases=(
        Case(FAILURE.test, "failed", 0.25, FAILURE.message),
        Case("a/test_b.py::B::c", "skipped", 0.5, "no\x00 GPU\x1b[0m"),
    ),
)
GREEN = replace(RESULT, failures=(), cases=(), kernels=("log_softmax", "square"))


class Page(HTMLParser):
    """Text of each element of a page, and that all of them are closed."""

    VOID = frozenset({"meta"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.links: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def of(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


def test_the_page_says_it_all_and_needs_nothing_besides() -> None:
    page = Page(html(RESULT))
    assert page.of("title") == ["OpInfo suite: failed"]
    assert "Failed: test_ops.py::TestX::test_y" in page.of("h2")
    assert {FAILURE.message.strip(), FAILURE.reproduce} <= set(page.of("pre"))
    cells = page.of("td")
    assert {"1.50", "3.00", "∞", "40", EVIL, "expanded", "square", "abc123"} <= set(cells)
    assert {"1 passed", "failed"} & {text for _, text in page.texts} == {"failed"}
    assert not page.links
    assert "url(" not in html(RESULT)
    assert Page(html(GREEN)).of("title") == ["OpInfo suite: passed"]


def test_a_run_of_nothing_is_a_page_too() -> None:
    nothing = replace(GREEN, tests={}, ops={}, launches={}, kernels=(), patch_files={})
    assert "passed" in "".join(Page(html(nothing)).of("span"))
    assert "| dtype |" not in markdown(nothing)


def test_markdown() -> None:
    text = markdown(RESULT)
    assert text.startswith("# OpInfo suite: failed\n\n- outcome: 4 passed, 1 failed, 2 skipped\n")
    assert "- never launched: log\\_softmax\\_row" in text
    assert "\n````\nwrong: " in text  # a fence that the message does not close
    assert f"```\n{FAILURE.reproduce}\n```" in text
    for row in (
        "| float16 | 7 | ∞ |  | float16[3] |",
        "| expanded | 17 | 0 |",
        "| log\\_softmax | 30 | 2 | 0 | 30 | 2 | 32 |",
        "| log\\_softmax\\_row | 0 | 0 | 0 | 0 | 0 | 0 |",
        "| square | 4 | 0 | 0 | 0 | 0 | 4 |",
    ):
        assert row in text.splitlines()
    evil, _ = (line for line in text.splitlines() if line.startswith("| float32 | 40 |"))
    assert evil.startswith("| float32 | 40 | 1.50 | 3.00 | ")
    assert evil.replace("\\|", "").count("|") == 6


def test_markdown_has_no_markup_of_a_samples_name() -> None:
    name = "a[b](c) [d][e] $x$ ~~y~~ &lt; float32[2, 3]\nnext"
    seen = replace(SEEN, worst={"float32": WorstError(1.5, name)})
    text = markdown(replace(GREEN, ops={"a_b": seen}))
    escaped = r"a[b\](c) [d\][e] \$x\$ \~\~y\~\~ \&lt; float32[2, 3] next"
    assert f"| float32 | 40 | 1.50 | 3.00 | {escaped} |" in text.splitlines()
    assert "## a\\_b" in text.splitlines()


def test_the_chosen_part_can_be_pasted() -> None:
    chosen = replace(GREEN, chosen=("-k", "dims and not float16"))
    assert "- part of the suite: -k 'dims and not float16'" in markdown(chosen).splitlines()
    assert "-k 'dims and not float16'" in Page(html(chosen)).of("dd")


def test_junit() -> None:
    (suite,) = ElementTree.fromstring(junit(RESULT))
    assert suite.attrib == {
        "name": "mpskit test, cpu backend", "tests": "2", "failures": "1", "errors": "0",
        "skipped": "1", "time": "12.340",
    }  # fmt: skip
    failed, skipped = suite
    assert failed.attrib == {"classname": "test_ops.TestX", "name": "test_y", "time": "0.250"}
    assert failed[0].text == f"{FAILURE.message}\nagain: {FAILURE.reproduce}"
    assert skipped.attrib["classname"] == "a.test_b.B"
    assert (skipped[0].tag, skipped[0].text) == ("skipped", "no? GPU?[0m")


def test_junit_has_files_that_cannot_be_imported() -> None:
    broken = Failure("test_x.py", "SyntaxError", "mpskit test")
    (suite,) = ElementTree.fromstring(junit(replace(RESULT, failures=(broken,), cases=())))
    assert (suite.attrib["tests"], suite.attrib["errors"], len(suite)) == ("1", "1", 1)
    assert suite[0][0].tag == "error"


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.html"
    os.mkfifo(pipe)
    with pytest.raises(MpskitError, match="is no regular file"):
        check_report_file(pipe)


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_files_are_as_others_are(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"report{suffix}"
    file.write_text("an older one")
    write_report(RESULT, file)
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    assert "log" in file.read_text(encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_leaves_the_older_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.xml"
    file.write_text("the older one")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(MpskitError, match=r"x\.xml cannot be written: No space left on device"):
        write_junit(RESULT, file)
    assert file.read_text() == "the older one"
    assert list(tmp_path.iterdir()) == [file]

"""docs/example-pr.md: it is about our series, and the files behind its numbers are there."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from mpskit.patching import load_patch_set

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
EXAMPLE = DOCS / "example-pr"
PATCHES = {patch.name: patch for patch in load_patch_set().patches}


def text_of(patch: str) -> str:
    return (EXAMPLE / patch / "PR.md").read_text()


def test_every_patch_has_its_text() -> None:
    index = (DOCS / "example-pr.md").read_text()
    for name, patch in PATCHES.items():
        assert f"- [{patch.title}](example-pr/{name}/PR.md)" in index
        assert text_of(name).startswith(f"# {patch.title}\n")


@pytest.mark.parametrize("patch", PATCHES)
def test_every_file_of_a_footnote_is_there(patch: str) -> None:
    sources = re.findall(r"`(\w+\.json)`, SHA-256 `([0-9a-f]{16})`", text_of(patch))
    assert len(sources) >= 2
    for name, digest in sources:
        folders = (EXAMPLE / patch, EXAMPLE, DOCS.parent / "benchmarks")
        content = next(path for path in (f / name for f in folders) if path.is_file()).read_bytes()
        assert hashlib.sha256(content).hexdigest()[:16] == digest, name


@pytest.mark.parametrize("patch", PATCHES)
def test_counts_are_the_files(patch: str) -> None:
    text = text_of(patch)
    suite = json.loads((EXAMPLE / "log_softmax_suite.json").read_text())
    assert f"{suite['passed']} passed, 0 failed, {suite['skipped']} skipped" in text
    for count in re.findall(r"(\d+) tests with the kernels in place", text):
        upstream = json.loads((EXAMPLE / patch / "upstream_tests.json").read_text())
        assert upstream["tests"] == int(count)

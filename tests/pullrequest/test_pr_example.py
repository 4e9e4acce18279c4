"""docs/example-pr.md: the files behind its numbers are there, and it is about our series."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from mpskit.patching import load_patch_set

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
TEXT = (DOCS / "example-pr.md").read_text()


def test_title_is_a_patchs() -> None:
    titles = [f"# {patch.title}" for patch in load_patch_set().patches]
    assert TEXT.partition("\n")[0] in titles


def test_every_file_of_a_footnote_is_there() -> None:
    sources = re.findall(r"`(\w+\.json)`, SHA-256 `([0-9a-f]{16})`", TEXT)
    assert len(sources) >= 2
    for name, digest in sources:
        folders = (DOCS / "example-pr", DOCS.parent / "benchmarks")
        content = next(path for path in (f / name for f in folders) if path.is_file()).read_bytes()
        assert hashlib.sha256(content).hexdigest()[:16] == digest, name


def test_counts_are_the_files() -> None:
    suite = json.loads((DOCS / "example-pr/log_softmax_suite.json").read_text())
    assert f"{suite['passed']} passed, 0 failed, {suite['skipped']} skipped" in TEXT
    upstream = json.loads((DOCS / "example-pr/upstream_tests.json").read_text())
    assert f"{upstream['tests']} tests with the kernels in place" in TEXT

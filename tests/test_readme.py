"""The README is true: its Python runs and prints what it says, its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpskit.cli import COMMANDS

README = (Path(__file__).parent.parent / "README.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_python_prints_what_its_comments_say(snippet):
    expected = re.findall(r"^print\(.*?\)  # (.*)$", snippet, re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert expected
    assert done.stdout.splitlines() == expected


def test_commands_exist():
    named = set(re.findall(r"(?:`|\$ )mpskit ([a-z]+)", README))
    assert named <= set(COMMANDS)
    assert {"apply", "status", "revert", "test"} <= named


def test_scripts_exist():
    for script in re.findall(r"\bci/\w+(?:\.py)?", README):
        assert (Path(__file__).parent.parent / script).is_file()

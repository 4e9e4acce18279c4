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


def test_metal_is_reported_as_it_says(tmp_path):
    (source,) = re.findall(r"```metal\n(.*?)```", README, re.DOTALL)
    (tmp_path / "shift.metal").write_text(source)
    transcripts = re.findall(
        r"\$ (mpskit (?:check|run) shift\.metal.*?)\n(.*?)```", README, re.DOTALL
    )
    assert len(transcripts) == 2
    for command, output in transcripts:
        done = subprocess.run(
            [sys.executable, "-m", *command.split()], capture_output=True, text=True, cwd=tmp_path
        )
        said = (done.stdout + done.stderr).replace(f"{tmp_path}/", "")
        assert said.strip() == output.strip()


def test_commands_exist():
    named = set(re.findall(r"(?:`|\$ )mpskit ([a-z]+)", README))
    assert named <= set(COMMANDS)
    assert {"apply", "status", "revert", "test"} <= named


def test_scripts_exist():
    for script in re.findall(r"\bci/\w+(?:\.py)?", README):
        assert (Path(__file__).parent.parent / script).is_file()

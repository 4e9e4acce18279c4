"""The tutorial is true: its commands print what it says, its edits fit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TUTORIAL = (Path(__file__).parents[2] / "docs/tutorial.md").read_text()
BLOCKS = re.findall(r"```(console|diff)\n(.*?)```", TUTORIAL, re.DOTALL)


def test_commands_and_edits(tmp_path):
    assert len(BLOCKS) >= 8
    for language, text in BLOCKS:
        if language == "diff":
            edit(text, tmp_path)
        else:
            for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
                compare(run(command, tmp_path), expected)


def edit(difference: str, folder: Path) -> None:
    """Makes an edit with git, which refuses one that does not fit."""
    subprocess.run(["git", "apply", "-"], input=difference, text=True, cwd=folder, check=True)


def run(command: str, folder: Path) -> str:
    """What a shell prints, wherever it prints it, as wide as it wants."""
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": beside, "COLUMNS": "200", "GIT_CONFIG_NOSYSTEM": "1"}
    environment.pop("MPSKIT_PATCH_SET", None)
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout


def compare(printed: str, expected: str) -> None:
    """``...`` stands for anything, over several lines too."""
    pattern = ".*".join(map(re.escape, expected.split("...")))
    assert re.fullmatch(pattern, printed, re.DOTALL), f"expected:\n{expected}\nprinted:\n{printed}"

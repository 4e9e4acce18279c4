"""``mpskit demo``: the whole job, on a part of the suite."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from click.testing import CliRunner

from mpskit.cli.demo_command import command
from mpskit.errors import MpskitError


def test_the_whole_job(tmp_path: Path) -> None:
    home = tmp_path / "demo"
    done = CliRunner().invoke(command, [str(home), "-k", "shifted and float32"])
    assert done.exit_code == 0, done.output
    headings = [
        line for line in done.output.splitlines() if line[:2] in ("1.", "2.", "3.", "4.", "5.")
    ]
    assert len(headings) == 5
    assert re.search(r"LogSoftmax\.metal: \d\d kernels", done.output)
    log = subprocess.run(
        ["git", "-C", str(home / "pytorch"), "log", "--format=%s", "mpskit/log_softmax", "^main"],
        capture_output=True,
        text=True,
        check=True,
    )
    text = (home / "PR.md").read_text()
    backward, forward = log.stdout.splitlines()
    assert text.startswith(f"# {forward}")
    assert f"\n# {backward}" in text
    assert "0 failed" in text
    assert text.strip() in done.output


def test_a_directory_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    done = CliRunner().invoke(command, [str(tmp_path)])
    assert isinstance(done.exception, MpskitError)
    assert "is not an empty directory" in done.exception.message
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]

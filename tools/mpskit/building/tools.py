"""Asks the tools of this machine whether they are there and what version they are."""

from __future__ import annotations

import shutil
import subprocess

_SECONDS = 60


def answer(*command: str) -> str | None:
    """The first line that ``command`` prints; None where it is not there or fails."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout.strip().splitlines() or [""])[0] if done.returncode == 0 else None


def succeeds(*command: str) -> bool:
    """Whether ``command`` is there and exits with 0."""
    return answer(*command) is not None

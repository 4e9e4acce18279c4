"""The same algorithm in OpenCL, run by Oclgrind: the measure for a simulator of kernels."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mpskit.errors import MpskitError

_HOST = Path(__file__).with_name("opencl_host.py")
_LARGEST_ERROR = 1e-5


@dataclass(frozen=True)
class Oclgrind:
    """An installed Oclgrind."""

    program: str
    version: str

    @classmethod
    def find(cls) -> Oclgrind | None:
        """The one on PATH, or None."""
        program = shutil.which("oclgrind")
        if program is None:
            return None
        printed = _output_of([program, "--version"])
        words = printed.split()
        return cls(program, words[words.index("Oclgrind") + 1] if "Oclgrind" in words else "?")

    def seconds(self, rows: int, columns: int, *, data_races: bool = False) -> float:
        """Of one launch of log_softmax_row.cl, checked against float64.

        Raises:
            MpskitError: Oclgrind failed, or its result is wrong.
        """
        options = ["--data-races"] if data_races else []
        sizes = ["--rows", str(rows), "--columns", str(columns), "--launches", "1"]
        printed = _output_of([self.program, *options, sys.executable, str(_HOST), *sizes])
        result = json.loads(printed.splitlines()[-1])
        if result["error"] > _LARGEST_ERROR:
            raise MpskitError(f"Oclgrind's result is wrong by {result['error']:g}.")
        (seconds,) = result["seconds"]
        return float(seconds)


def _output_of(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise MpskitError(
            f"{' '.join(command[:2])} … failed with {done.returncode}: {done.stderr.strip()[-300:]}"
        )
    return done.stdout

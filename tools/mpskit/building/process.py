"""Runs a program of a build: its output line by line, and an end that leaves no child behind."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from mpskit import interrupts
from mpskit.errors import MpskitError

_GRACE_SECONDS = 5


@dataclass(frozen=True)
class Finished:
    """A program that has ended: its exit status, all that it printed, and how long it took."""

    status: int
    output: str
    seconds: float


class Log:
    """What the programs of a build printed, in a file; without a file it is dropped."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path | None) -> Iterator[Log]:
        """A log in ``path``, written anew.

        Raises:
            MpskitError: the file cannot be written.
        """
        if path is None:
            yield cls()
            return
        try:
            file = path.open("w", encoding="utf-8")
        except OSError as error:
            raise MpskitError(
                f"The log {path} cannot be written: {error.strerror}.",
                hint="Name a file in a folder of yours with --log FILE.",
            ) from None
        with file:
            yield cls(file)

    def write(self, text: str) -> None:
        """Add ``text``; on disk at once, so that it is there after a crash too."""
        if self._file:
            self._file.write(text)
            self._file.flush()


def run(
    command: Sequence[str | Path],
    *,
    log: Log,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> Finished:
    """Runs ``command`` to its end, with both its streams as one text.

    Args:
        command: the program and its arguments.
        log: gets the command and everything it prints.
        cwd: where it runs; here by default.
        environment: added to this process's own.
        on_line: called with each line when it is there.

    Raises:
        MpskitError: there is no such program.

    When this is interrupted the program and all its children are ended first.
    """
    arguments = [str(part) for part in command]
    log.write(f"$ {_shown(arguments, environment)}\n")
    started = time.monotonic()
    lines = []
    with contextlib.ExitStack() as until_it_is_watched:
        until_it_is_watched.enter_context(interrupts.held())
        with _start(arguments, cwd, environment) as child:
            try:
                until_it_is_watched.close()
                assert child.stdout is not None
                for line in child.stdout:
                    lines.append(line)
                    log.write(line)
                    if on_line:
                        on_line(line)
            except BaseException:
                _end(child)
                raise
    seconds = time.monotonic() - started
    log.write(f"exit status {child.returncode}, {seconds:.1f} s\n\n")
    return Finished(child.returncode, "".join(lines), seconds)


def _shown(arguments: Sequence[str], environment: Mapping[str, str] | None) -> str:
    return (
        shlex.join([*(f"{key}={value}" for key, value in (environment or {}).items())])
        + (" " if environment else "")
        + shlex.join(arguments)
    )


def _start(
    arguments: Sequence[str], cwd: Path | None, environment: Mapping[str, str] | None
) -> subprocess.Popen[str]:
    """The running program, in a process group of its own."""
    try:
        return subprocess.Popen(
            arguments,
            cwd=cwd,
            env={**os.environ, "LC_ALL": "C", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise MpskitError(
            f"{arguments[0]} cannot be run: {error.strerror}.",
            hint="`mpskit doctor` says what is missing here and how to get it.",
        ) from None


def _end(child: subprocess.Popen[str]) -> None:
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_SECONDS)
            return

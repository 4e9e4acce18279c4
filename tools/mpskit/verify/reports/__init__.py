"""Reports of a run of the suite, as files: JSON, Markdown, a web page, JUnit's XML."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from mpskit.errors import MpskitError
from mpskit.verify.reports.html import html
from mpskit.verify.reports.junit import junit
from mpskit.verify.reports.markdown import markdown
from mpskit.verify.reports.result import SuiteResult

Render = Callable[[SuiteResult], str]


def _json(result: SuiteResult) -> str:
    return json.dumps(result.to_json(), indent=2) + "\n"


_RENDERERS: dict[str, Render] = {".html": html, ".md": markdown, ".json": _json}


def check_report_file(file: Path) -> None:
    """Refuses a report that could not be written, before the tests run for minutes.

    Raises:
        MpskitError: its name tells no format, or it can be no file.
    """
    if file.suffix not in _RENDERERS:
        raise MpskitError(
            f"{file}: a report's name ends in {', '.join(_RENDERERS)}.",
            hint=f"Name it {file.with_suffix('.html')}, for example.",
        )
    check_writable(file)


def check_writable(file: Path) -> None:
    """Refuses a file that cannot be written.

    Raises:
        MpskitError: it is a folder or a device, or lies in a folder that is missing or not to be
            written to.
    """
    folder = file.absolute().parent
    if file.is_dir():
        raise MpskitError(f"{file} is a folder.", hint="Name a file in it.")
    if file.exists() and not file.is_file():
        # A report takes the place of what has its name, and that of /dev/null must stay.
        raise MpskitError(f"{file} is no regular file.", hint="Name one that is, or a new one.")
    if not folder.is_dir():
        raise MpskitError(
            f"{file} cannot be written: there is no folder {folder}.",
            hint=f"Make it first: mkdir -p {folder}",
        )
    if not os.access(folder, os.W_OK):
        raise MpskitError(
            f"{file} cannot be written: {folder} is read-only.", hint="Name another folder."
        )


def write_report(result: SuiteResult, file: Path) -> None:
    """Writes a report in the format that its name ends with.

    Raises:
        MpskitError: it cannot be written; what was there is as it was.
    """
    _write(file, _RENDERERS[file.suffix](result))


def write_junit(result: SuiteResult, file: Path) -> None:
    """Writes what CI systems read, a test case a test.

    Raises:
        MpskitError: it cannot be written; what was there is as it was.
    """
    _write(file, junit(result))


def _write(file: Path, text: str) -> None:
    """Writes a file entirely or not at all."""
    target = file.resolve()
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
        draft = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
            draft.chmod(_mode_of_new_files())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise MpskitError(
            f"{file} cannot be written: {error.strerror}.", hint="Name another place."
        ) from None


def _mode_of_new_files() -> int:
    """What the user's umask leaves; temporary files are for their owner alone."""
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask

"""From what the user gives, text or a path, to one embedded text."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from mpskit.errors import MpskitError
from mpskit.metal.frontend.includes import embed_includes

SOURCE_NAME = "program_source"  # what diagnostics call a text that has no file


def load(source: str | Path, include_dirs: Sequence[str | Path] = ()) -> str:
    """The source with its includes embedded; torch's own headers are searched last.

    Raises:
        MpskitError: the file cannot be read.
        CompileError: includes without end.
    """
    folders = [Path(folder).resolve() for folder in include_dirs] + system_dirs()
    if isinstance(source, str):
        return embed_includes(source, SOURCE_NAME, folders)
    try:
        text = source.read_text()
    except OSError as error:
        raise MpskitError(f"{source} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise MpskitError(
            f"{source} is no text: {error.reason} at byte {error.start}.",
            hint="Give Metal source in UTF-8, not a compiled .metallib or .air file.",
        ) from None
    return embed_includes(text, str(source), folders, folder=source.resolve().parent)


def system_dirs() -> list[Path]:
    """The include folder of the installed torch, found without importing torch."""
    spec = importlib.util.find_spec("torch")
    return [Path(spec.origin).parent / "include"] if spec and spec.origin else []

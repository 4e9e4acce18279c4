"""Make a directory with all that belongs in it, or none at all."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mpskit.errors import MpskitError


@contextlib.contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """A draft beside ``target``, on its disk, that takes its place at the end of the block.

    A block that fails or is interrupted leaves neither.

    Raises:
        MpskitError: ``target`` is there and not empty, or its parent is not.
    """
    _refuse(target)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        draft.chmod(0o755)
        yield draft
        draft.replace(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _refuse(target: Path) -> None:
    if target.exists() and not target.is_dir():
        raise MpskitError(f"{target} is a file.", hint="Name a directory that is not there yet.")
    if target.is_dir() and any(target.iterdir()):
        raise MpskitError(
            f"{target} is not empty.", hint="Name a directory that is empty or not there yet."
        )
    if not target.parent.is_dir():
        raise MpskitError(
            f"{target.parent} does not exist.", hint=f"Make it first: mkdir -p {target.parent}"
        )

"""Compiled libraries, kept by a hash of everything that went into them.

An entry is a library and, beside it, the digest of its bytes. The digest is written last and
both by rename, so an entry that is damaged or half written is never loaded: it is made again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from mpskit.errors import MpskitError

Builder = Callable[[Path], None]


@lru_cache(maxsize=1)
def directory() -> Path:
    """The cache's folder: ``$MPSKIT_CACHE_DIR``, or the user's cache folder.

    Where neither can be written, a folder that lasts as long as this process.
    """
    configured = os.environ.get("MPSKIT_CACHE_DIR")
    folder = Path(configured) if configured else user_cache_path("mpskit")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(_process_folder().name)


@lru_cache(maxsize=1)
def _process_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="mpskit-cache-")


def key(parts: Iterable[str | bytes]) -> str:
    """The name of the entry that these parts make; their order and their borders count."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:40]


def entry(name: str, build: Builder) -> Path:
    """The file of the entry ``name``, made by ``build(path)`` when there is no sound one.

    Processes that want the same entry at once build it once. When the disk is full the entry
    is built where it can be, for this process alone.

    Raises:
        MpskitError: it can be built nowhere.
    """
    file = directory() / name
    if _is_sound(file):
        return file
    try:
        with FileLock(f"{file}.lock"):
            if not _is_sound(file):
                _store(file, build)
        return file
    except OSError:
        return _entry_of_this_process(name, build)


def _entry_of_this_process(name: str, build: Builder) -> Path:
    try:
        file = Path(_process_folder().name) / name
        if not _is_sound(file):
            _store(file, build)
        return file
    except OSError as error:
        raise MpskitError(
            f"There is no place for a compiled kernel: {error}.",
            hint="Free some space, or set MPSKIT_CACHE_DIR or TMPDIR to a folder that has some.",
        ) from error


def _store(file: Path, build: Builder) -> None:
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".build-") as folder:
        built = Path(folder) / file.name
        build(built)
        digest = built.with_name("digest")
        digest.write_text(_digest(built))
        digest_of(file).unlink(missing_ok=True)
        built.replace(file)
        digest.replace(digest_of(file))


def _is_sound(file: Path) -> bool:
    try:
        return digest_of(file).read_text() == _digest(file)
    except (OSError, UnicodeDecodeError):
        return False


def digest_of(file: Path) -> Path:
    """Where the digest of an entry's bytes stands."""
    return file.with_name(f"{file.name}.sha256")


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()

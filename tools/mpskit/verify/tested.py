"""Which sources a run has tested, for telling later whether they have changed since."""

from __future__ import annotations

import hashlib
from pathlib import Path

from mpskit.patching import PatchSet, load_patch_set
from mpskit.patching.series import SERIES_FILE

# Kernels, plans and host code; the tests that go upstream are not what a run tests.
_SOURCES = "aten/"


def sources_under_test(patch_dir: Path | None = None) -> dict[str, str]:
    """SHA-256 of each source that ``patch_dir`` has of a patch set, by path.

    Args:
        patch_dir: a patch set, or a checkout that mpskit's own patch set is applied to; None for
            mpskit's own.
    """
    has_series = patch_dir is None or (patch_dir / SERIES_FILE).is_file()
    patch_set = load_patch_set(patch_dir if has_series else None)
    if patch_dir is None or has_series:
        return source_digests(patch_set)
    files = (patch_dir / path for path in source_digests(patch_set))
    return {
        file.relative_to(patch_dir).as_posix(): _digest(file.read_bytes())
        for file in files
        if file.is_file()
    }


def source_digests(patch_set: PatchSet) -> dict[str, str]:
    """SHA-256 of each source that the patch set brings, by path."""
    files = (file for patch in patch_set.patches for file in patch.files)
    return {f.path: _digest(f.content) for f in files if f.path.startswith(_SOURCES)}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

"""What the suite runs on: set once from pytest's options, before tests are collected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """What the tests run on.

    Attributes:
        backend: of :func:`mpskit.metal.compile_shader`.
        patch_dir: mirrors the PyTorch tree; None is the patch set that comes with mpskit.
        sanitize: watch every access of the kernels.
        ops: names of the definitions to test; all where none is given.
    """

    backend: str = "cpu"
    patch_dir: Path | None = None
    sanitize: bool = False
    ops: tuple[str, ...] = ()

    @property
    def device_type(self) -> str:
        """Where a backend's tensors live: each backend bears its device's name."""
        return self.backend

    @property
    def definitions_dir(self) -> Path | None:
        """Definitions and tests of the patch set's own ops; None where it has none."""
        folder = self.patch_dir / "opinfo" if self.patch_dir else None
        return folder if folder and folder.is_dir() else None


_current = Settings()


def settings() -> Settings:
    return _current


def configure(new: Settings) -> None:
    global _current
    _current = new

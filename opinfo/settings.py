"""What the suite runs on: set once from pytest's options, before tests are collected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """``patch_dir`` mirrors the PyTorch tree; None is the patch set that comes with mpskit."""

    backend: str = "cpu"
    patch_dir: Path | None = None

    @property
    def device_type(self) -> str:
        """Where a backend's tensors live: each backend bears its device's name."""
        return self.backend


_current = Settings()


def settings() -> Settings:
    return _current


def configure(new: Settings) -> None:
    global _current
    _current = new

"""Where the patch's kernels and plan lie, and what they include."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from mpskit.errors import MpskitError
from mpskit.patching import default_patch_set_directory

_MPS = Path("aten/src/ATen/native/mps")


@dataclass(frozen=True)
class PatchSources:
    """log_softmax and its backward, below a directory that mirrors the PyTorch tree."""

    patch_dir: Path

    @classmethod
    def find(cls, patch_dir: Path | None = None) -> PatchSources:
        """Those in ``patch_dir``, or in the patch set that belongs to this package.

        Raises:
            MpskitError: a source is missing there.
        """
        sources = cls(patch_dir or default_patch_set_directory())
        for path in (
            *(sources.kernels, sources.plan, sources.params),
            *(sources.backward_kernels, sources.backward_plan),
        ):
            if not path.is_file():
                raise MpskitError(
                    f"The patch set has no {path.relative_to(sources.patch_dir)}: "
                    f"{sources.patch_dir}",
                    hint="Give the directory that mirrors the PyTorch tree, e.g. aten_patch.",
                )
        return sources

    @property
    def kernels(self) -> Path:
        return self.patch_dir / _MPS / "kernels/LogSoftmax.metal"

    @property
    def params(self) -> Path:
        return self.patch_dir / _MPS / "kernels/LogSoftmax.h"

    @property
    def plan(self) -> Path:
        return self.patch_dir / _MPS / "operations/LogSoftmaxPlan.h"

    @property
    def backward_kernels(self) -> Path:
        return self.patch_dir / _MPS / "kernels/LogSoftmaxBackward.metal"

    @property
    def backward_plan(self) -> Path:
        return self.patch_dir / _MPS / "operations/LogSoftmaxBackwardPlan.h"

    @property
    def headers(self) -> tuple[Path, ...]:
        """All that the plans and the kernels include of the patch set."""
        return tuple(sorted((self.patch_dir / _MPS).rglob("*.h")))

    @property
    def include_dirs(self) -> tuple[Path, ...]:
        """The patch set's ATen, then the torch package's headers."""
        return self.patch_dir / "aten/src", Path(torch.__file__).parent / "include"

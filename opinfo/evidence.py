"""What a test has seen, for the summary of a whole run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch

from mpskit.verify.accuracy import Comparison
from opinfo.definition import dtype_name


@dataclass
class Evidence:
    """Samples and launches of one test, and its worst error by dtype.

    Attributes:
        samples: samples compared, by dtype of the output.
        launches: by host name of the kernel.
        worst: (error in ULP, sample it was found in), by dtype of the output.
        sample_index: of the sample input under test, where it came from an OpInfo entry.
    """

    samples: Counter[str] = field(default_factory=Counter)
    launches: Counter[str] = field(default_factory=Counter)
    worst: dict[str, tuple[float, str]] = field(default_factory=dict)
    sample_index: int | None = None

    def add(
        self,
        dtype: torch.dtype,
        launches: Counter[str],
        comparison: Comparison,
        description: str,
    ) -> None:
        """Takes in one sample's result."""
        name = dtype_name(dtype)
        self.samples[name] += 1
        self.launches.update(launches)
        worst, _ = self.worst.get(name, (-1.0, ""))
        if comparison.worst_ulp > worst:
            self.worst[name] = (comparison.worst_ulp, description)

    def to_json(self) -> dict[str, Any]:
        return {
            "samples": dict(self.samples),
            "launches": dict(self.launches),
            "worst": {dtype: list(worst) for dtype, worst in self.worst.items()},
            "sample_index": self.sample_index,
        }

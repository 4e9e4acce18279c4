"""What a test has seen, for the summary of a whole run."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from mpskit.verify.accuracy import Comparison
from opinfo.definition import dtype_name
from opinfo.layouts import layout_of


@dataclass(frozen=True)
class Worst:
    """An error in ULP, and the sample input that it was found in.

    ``index`` is the sample's among those of its OpInfo entry; None where it is of no entry.
    """

    ulp: float
    sample: str
    index: int | None


@dataclass
class OpEvidence:
    """What was seen of one op.

    Attributes:
        samples: samples compared, by dtype of the result.
        input_layouts, output_layouts: of those samples and results, by name.
        launches: by host name of the kernel.
        worst: the kernels' largest error, by dtype of the result.
        cpu_worst: that of torch's CPU kernel on the same samples, where it was asked.
    """

    samples: Counter[str] = field(default_factory=Counter)
    input_layouts: Counter[str] = field(default_factory=Counter)
    output_layouts: Counter[str] = field(default_factory=Counter)
    launches: Counter[str] = field(default_factory=Counter)
    worst: dict[str, Worst] = field(default_factory=dict)
    cpu_worst: dict[str, Worst] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        errors = {"worst": self.worst, "cpu_worst": self.cpu_worst}
        return {
            "samples": dict(self.samples),
            "input_layouts": dict(self.input_layouts),
            "output_layouts": dict(self.output_layouts),
            "launches": dict(self.launches),
            **{
                name: {dtype: asdict(error) for dtype, error in found.items()}
                for name, found in errors.items()
            },
        }


@dataclass
class Evidence:
    """What one test has seen.

    Attributes:
        ops: by name of the op.
        launches: by host name of the kernel, those that belong to no sample too.
        sample_index: of the sample input under test, where it came from an OpInfo entry.
    """

    ops: dict[str, OpEvidence] = field(default_factory=dict)
    launches: Counter[str] = field(default_factory=Counter)
    sample_index: int | None = None

    def add(
        self,
        op: str,
        input: Tensor,
        result: Tensor,
        *,
        launches: Counter[str],
        comparison: Comparison,
        cpu: Comparison | None,
        description: str,
        index: int | None,
    ) -> None:
        """Takes in one sample: its result, how good that is, and how good torch's CPU kernel's."""
        seen = self.ops.setdefault(op, OpEvidence())
        seen.samples[dtype_name(result.dtype)] += 1
        seen.input_layouts[layout_of(input)] += 1
        seen.output_layouts[layout_of(result)] += 1
        seen.launches.update(launches)
        self.launches.update(launches)
        _keep_worse(seen.worst, result.dtype, Worst(comparison.worst_ulp, description, index))
        if cpu is not None:
            _keep_worse(seen.cpu_worst, result.dtype, Worst(cpu.worst_ulp, description, index))

    def to_json(self) -> dict[str, Any]:
        return {
            "ops": {name: seen.to_json() for name, seen in self.ops.items()},
            "launches": dict(self.launches),
            "sample_index": self.sample_index,
        }


def _keep_worse(worst: dict[str, Worst], dtype: torch.dtype, found: Worst) -> None:
    name = dtype_name(dtype)
    if name not in worst or found.ulp > worst[name].ulp:
        worst[name] = found

"""log_softmax: PyTorch's OpInfo entries and ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.testing._internal.common_dtype import floating_types_and
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from mpskit.verify.log_softmax import IMPLEMENTATIONS
from opinfo.definition import MPS_FLOATING_DTYPES, Definition
from opinfo.definitions.log_softmax import large_index, layouts, reported, rows
from opinfo.definitions.log_softmax.errors import error_inputs
from opinfo.definitions.log_softmax.forcings import FORCINGS
from opinfo.definitions.log_softmax.gradients import DIFFERENCES, gradient
from opinfo.definitions.log_softmax.reference import reference, row_dim, tolerance


def _entry(variant: str, samples: Callable[..., Iterator[SampleInput]]) -> OpInfo:
    return OpInfo(
        "log_softmax",
        variant_test_name=variant,
        dtypes=floating_types_and(*MPS_FLOATING_DTYPES),
        sample_inputs_func=samples,
    )


def _write_to(out: Tensor, sample: SampleInput) -> Tensor:
    result: Tensor = torch.ops.aten._log_softmax.out(sample.input, row_dim(sample), False, out=out)
    return result


LOG_SOFTMAX = Definition(
    name="log_softmax",
    function="_log_softmax.out",
    implementations=IMPLEMENTATIONS,
    parameters=("dim",),
    upstream=tuple(op for op in op_db if op.name == "log_softmax"),
    ours=(
        _entry("long_rows", rows.long_rows),
        _entry("plan_thresholds", rows.plan_thresholds),
        _entry("medium_rows", rows.medium_rows),
        _entry("short_rows", rows.short_rows),
        _entry("many_rows", rows.many_rows),
        _entry("columns", rows.columns),
        _entry("dims", layouts.every_dim),
        _entry("layouts", layouts.every_layout),
        _entry("expanded", layouts.every_expansion),
        _entry("one_shape", layouts.one_shape),
        _entry("outs", layouts.for_outs),
        _entry("empty", layouts.empty),
        _entry("reported", reported.samples),
        _entry("large_index", large_index.samples),
        _entry("forced", rows.forced),
    ),
    reference=reference,
    tolerance=tolerance,
    write_to=_write_to,
    error_inputs=error_inputs,
    forcings=FORCINGS,
    gradient=gradient,
    differences=DIFFERENCES,
)

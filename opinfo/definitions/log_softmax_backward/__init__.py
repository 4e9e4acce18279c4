"""The gradient of log_softmax: no OpInfo entry of PyTorch's has it, all are ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch.testing._internal.common_dtype import floating_types_and
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from mpskit.verify.log_softmax import LOG_SOFTMAX_BACKWARD as IMPLEMENTATION
from opinfo.definition import MPS_FLOATING_DTYPES, Definition
from opinfo.definitions.log_softmax_backward import samples
from opinfo.definitions.log_softmax_backward.errors import error_inputs
from opinfo.definitions.log_softmax_backward.forcings import FORCINGS
from opinfo.definitions.log_softmax_backward.reference import reference, tolerance

_NAME = "_log_softmax_backward_data"


def _entry(variant: str, samples: Callable[..., Iterator[SampleInput]]) -> OpInfo:
    return OpInfo(
        _NAME,
        op=torch.ops.aten._log_softmax_backward_data,
        variant_test_name=variant,
        dtypes=floating_types_and(*MPS_FLOATING_DTYPES),
        sample_inputs_func=samples,
    )


LOG_SOFTMAX_BACKWARD = Definition(
    name=_NAME,
    function="_log_softmax_backward_data.out",
    implementations=(IMPLEMENTATION,),
    parameters=("output", "dim", "input_dtype"),
    ours=(
        _entry("plain", samples.every_dim),
        _entry("interleaved", samples.interleaved),
        _entry("rows", samples.rows),
        _entry("plan_thresholds", samples.plan_thresholds),
        _entry("columns", samples.columns),
        _entry("layouts", samples.every_layout),
        _entry("expanded", samples.expanded_gradients),
        _entry("one_shape", samples.one_shape),
        _entry("outs", samples.for_outs),
        _entry("empty", samples.empty),
        _entry("special", samples.special_values),
        _entry("large_index", samples.large_index),
        _entry("forced", samples.forced),
    ),
    reference=reference,
    tolerance=tolerance,
    error_inputs=error_inputs,
    forcings=FORCINGS,
)

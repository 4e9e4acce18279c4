"""Tests that hold for every op whose kernels a patch brings."""

# mypy: allow-subclassing-any, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.common_device_type import (
    OpDTypes,
    instantiate_device_type_tests,
)
from torch.testing._internal.common_dtype import integral_types_and
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from opinfo.definition import MPS_FLOATING_DTYPES
from opinfo.definitions import definition_of, definitions_under_test
from opinfo.layouts import LAYOUTS, Guarded, fits
from opinfo.op_test_case import Call, OpTestCase, ops_if_any
from opinfo.settings import settings

DEFINITIONS = definitions_under_test()
UPSTREAM = [op for definition in DEFINITIONS for op in definition.upstream]
OURS = [op for definition in DEFINITIONS for op in definition.ours]
WITH_DTYPE = [op for op in UPSTREAM if op.variant_test_name == "with_dtype"]
UPSTREAM_PLAIN = [op for op in UPSTREAM if not op.variant_test_name]
PLAIN = [op for definition in DEFINITIONS for op in definition.plain]
FORCED = [op for definition in DEFINITIONS for op in definition.entries("forced")]
LAYOUTS_OF_ONE_SHAPE = [op for definition in DEFINITIONS for op in definition.entries("one_shape")]
OUTS = [op for definition in DEFINITIONS for op in definition.entries("outs")]
MPS_DTYPES = integral_types_and(torch.bool, *MPS_FLOATING_DTYPES)


def _without_float64(samples: Iterable[SampleInput]) -> Iterator[SampleInput]:
    """PyTorch's samples as MPS can take them: a requested float64 becomes float32."""
    for sample in samples:
        if sample.kwargs.get("dtype") == torch.float64:
            sample.kwargs = {**sample.kwargs, "dtype": torch.float32}
        yield sample


def _bytes(storage: torch.UntypedStorage) -> Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _calling(function: Callable[..., Tensor], **keywords: Any) -> Call:
    return lambda sample: function(sample.input, *sample.args, **sample.kwargs, **keywords)


class TestKernels(OpTestCase):
    """Results against the float64 reference, by OpInfo entry."""

    @ops_if_any(UPSTREAM + OURS, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_samples(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for sample in _without_float64(op.sample_inputs(device, dtype)):
            self.check_sample(op, sample)

    @ops_if_any(UPSTREAM, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_reference_inputs(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for sample in _without_float64(op.reference_inputs(device, dtype)):
            self.check_sample(op, sample)

    @ops_if_any(WITH_DTYPE, allowed_dtypes=MPS_DTYPES)
    def test_dtype_argument(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for sample in op.sample_inputs(device, dtype):
            for target in MPS_FLOATING_DTYPES:
                sample.kwargs = {**sample.kwargs, "dtype": target}
                self.check_sample(op, sample)

    @ops_if_any(FORCED, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_each_kernel(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for forcing in definition_of(op).forcings:
            for sample in op.sample_inputs(device, dtype):
                if forcing.applies(sample):
                    self.check_sample(op, sample, forcing=forcing)

    @ops_if_any(UPSTREAM_PLAIN, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_aliases(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for function in filter(None, (op.method_variant, *(alias.op for alias in op.aliases))):
            for sample in op.sample_inputs(device, dtype):
                self.check_sample(op, sample, call=_calling(function))


class TestOut(OpTestCase):
    """Results written to a tensor that is given."""

    @ops_if_any(LAYOUTS_OF_ONE_SHAPE + OUTS, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_layouts(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        definition = definition_of(op)
        for sample in op.sample_inputs(device, dtype):
            shape = tuple(definition.reference(sample).shape)
            for layout in (layout for layout in LAYOUTS if fits(layout, shape)):
                guarded = Guarded(layout, shape, dtype=dtype, device=sample.input.device)
                result = self.check_sample(
                    op,
                    sample,
                    call=partial(definition.write, guarded.tensor),
                    notes=f"out {layout.__name__}",
                )
                self.assertIs(result, guarded.tensor)
                damaged = guarded.damaged()
                self.assertEqual(
                    damaged,
                    0,
                    f"{definition.describe(sample)}: written beside out, {layout.__name__}",
                )

    @ops_if_any(PLAIN, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_wrong_size_is_resized(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for sample in op.sample_inputs(device, dtype):
            shape = definition_of(op).reference(sample).shape
            nothing = torch.empty(0, dtype=dtype, device=device)
            self._check_resized(op, sample, nothing, "out of no elements")
            larger = torch.empty((*shape, 2), dtype=dtype, device=device)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self._check_resized(op, sample, larger, "out too large")
            if larger.numel() and shape.numel():
                self.assertIn("An output with one or more elements was resized", str(caught[0]))

    def _check_resized(self, op: OpInfo, sample: SampleInput, out: Tensor, notes: str) -> None:
        result = self.check_sample(op, sample, call=_calling(op.op, out=out), notes=notes)
        self.assertIs(result, out)


class TestConduct(OpTestCase):
    """What a caller may rely on besides the values."""

    @ops_if_any(LAYOUTS_OF_ONE_SHAPE, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_same_bits_again(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for sample in op.sample_inputs(device, dtype):
            first = self.check_sample(op, sample)
            again = self.check_sample(op, sample)
            self.assertTrue(torch.equal(first, again), definition_of(op).describe(sample))

    @ops_if_any(LAYOUTS_OF_ONE_SHAPE, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_input_is_untouched(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for sample in op.sample_inputs(device, dtype):
            before = sample.input.untyped_storage().clone()
            self.check_sample(op, sample)
            after = sample.input.untyped_storage()
            untouched = torch.equal(_bytes(before), _bytes(after))
            self.assertTrue(untouched, definition_of(op).describe(sample))

    @ops_if_any(PLAIN, dtypes=OpDTypes.none)
    def test_errors(self, device: str, op: OpInfo) -> None:
        definition = definition_of(op)
        upstream = () if op.error_inputs_func is None else op.error_inputs(device)
        for error_input in (*upstream, *definition.error_inputs(device)):
            sample = error_input.sample_input
            with (
                definition.kernels_in_place() as kernels,
                self.assertRaisesRegex(error_input.error_type, error_input.error_regex),
            ):
                op(sample.input, *sample.args, **sample.kwargs)
            self.assertFalse(kernels.launches, definition.describe(sample))


_devices = {"only_for": settings().device_type, "allow_mps": True}
instantiate_device_type_tests(TestKernels, globals(), **_devices)
instantiate_device_type_tests(TestOut, globals(), **_devices)
instantiate_device_type_tests(TestConduct, globals(), **_devices)

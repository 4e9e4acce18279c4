"""Gradients with the kernels in place: beside torch's CPU op, float64 and difference quotients."""

# mypy: allow-subclassing-any, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from mpskit.verify.accuracy import compare
from opinfo.definition import MPS_FLOATING_DTYPES, Differences
from opinfo.definitions import definition_of, definitions_under_test
from opinfo.op_test_case import Function, OpTestCase, function_of, ops_if_any
from opinfo.settings import settings

DEFINITIONS = definitions_under_test()
UPSTREAM = [op for each in DEFINITIONS for op in each.upstream if op.supports_autograd]
# What costs more than it shows a second time.
_LARGE = ("large_index", "long_rows", "many_rows", "plan_thresholds", "forced")
WITH_REFERENCE = [
    op
    for each in DEFINITIONS
    if each.gradient
    for op in (*each.upstream, *each.ours)
    if op.variant_test_name not in _LARGE
]
WITH_DIFFERENCES = [op for each in DEFINITIONS if each.differences for op in each.plain]
# What test_mps.py allows between an op on MPS and on the CPU: relative, absolute.
_BESIDE_THE_CPU = {
    torch.float32: (1e-5, 1e-5),
    torch.float16: (5e-3, 5e-3),
    torch.bfloat16: (2e-2, 2e-2),
}


def _differentiable(samples: Iterator[SampleInput]) -> Iterator[SampleInput]:
    return (s for s in samples if s.input.numel() and s.kwargs.get("dtype") != torch.float64)


def _cotangent(result: Tensor) -> Tensor:
    return torch.randn(result.shape, device="cpu").to(result.device, result.dtype)


class TestGradients(OpTestCase):
    """Output and gradient of every sample."""

    @ops_if_any(UPSTREAM, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_consistency(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        """With torch's CPU op in the same dtype, as PyTorch's own tests of MPS compare them."""
        for sample in _differentiable(op.sample_inputs(device, dtype)):
            output, gradient, cotangent = self._run(op, sample)
            input = sample.input.detach().cpu().requires_grad_()
            expected = op(input, *sample.args, **sample.kwargs)
            expected.backward(cotangent.cpu())
            description = definition_of(op).describe(sample)
            for ours, cpus in ((output, expected), (gradient, input.grad)):
                rtol, atol = _BESIDE_THE_CPU[cpus.dtype]
                self.assertEqual(ours.cpu(), cpus, description, rtol=rtol, atol=atol)

    @ops_if_any(WITH_REFERENCE, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_reference(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        """With float64, in random directions."""
        definition = definition_of(op)
        assert definition.gradient is not None
        for sample in _differentiable(op.sample_inputs(device, dtype)):
            _, gradient, cotangent = self._run(op, sample)
            expected, allowed = definition.gradient(sample, cotangent)
            comparison = compare(gradient, expected, allowed)
            if comparison.failing:
                self.fail(f"{definition.describe(sample)}: gradient {comparison}")

    def _run(self, op: OpInfo, sample: SampleInput) -> tuple[Tensor, Tensor, Tensor]:
        """Output, gradient of the input, and the gradient of the output that it is made from."""
        definition = definition_of(op)
        input = sample.input.detach().requires_grad_()
        with definition.kernels_in_place() as kernels:
            output = op(input, *sample.args, **sample.kwargs)
            forward = kernels.launches.total()
            cotangent = _cotangent(output)
            output.backward(cotangent)
        self.assertGreater(forward, 0)
        if len(definition.implementations) > 1:
            self.assertGreater(kernels.launches.total(), forward, "the backward had no kernel")
        self.evidence.launches.update(kernels.launches)
        assert input.grad is not None
        return output.detach(), input.grad, cotangent


class TestDifferences(OpTestCase):
    """gradcheck and gradgradcheck, on kernels that have float32 alone."""

    @ops_if_any(WITH_DIFFERENCES, allowed_dtypes=(torch.float32,))
    def test_gradcheck(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for function, input, differences, is_large in self._problems(op, device):
            with self._kernels(op):
                gradcheck(
                    function,
                    (input,),
                    eps=differences.step,
                    atol=differences.tolerance,
                    rtol=0,
                    check_forward_ad=op.supports_forward_ad,
                    check_batched_grad=not is_large,
                    check_batched_forward_grad=op.supports_forward_ad and not is_large,
                    fast_mode=is_large,
                )

    @ops_if_any(WITH_DIFFERENCES, allowed_dtypes=(torch.float32,))
    def test_gradgradcheck(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for function, input, differences, is_large in self._problems(op, device):
            with self._kernels(op):
                cotangent = differences.cotangent(function(input.detach())).requires_grad_()
                gradgradcheck(
                    function,
                    (input,),
                    (cotangent,),
                    eps=differences.step,
                    atol=differences.tolerance,
                    rtol=0,
                    check_fwd_over_rev=op.supports_forward_ad,
                    check_batched_grad=not is_large,
                    fast_mode=is_large,
                )

    def _problems(
        self, op: OpInfo, device: str
    ) -> Iterator[tuple[Function, Tensor, Differences, bool]]:
        differences = definition_of(op).differences
        assert differences is not None
        for samples, is_large in ((differences.small, False), (differences.large, True)):
            for sample in samples(device):
                function = function_of(op, sample)
                yield function, sample.input.requires_grad_(), differences, is_large

    @contextmanager
    def _kernels(self, op: OpInfo) -> Iterator[None]:
        with definition_of(op).kernels_in_place() as kernels, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not a double precision floating point")
            yield
        kernels.require_launches()
        self.evidence.launches.update(kernels.launches)


for _test_class in (TestGradients, TestDifferences):
    instantiate_device_type_tests(
        _test_class, globals(), only_for=settings().device_type, allow_mps=True
    )
del _test_class  # a class that pytest would collect uninstantiated

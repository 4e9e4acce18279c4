"""What torch makes of an op: shapes without data, batches by vmap, derivatives by torch.func."""

# mypy: allow-subclassing-any, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from opinfo.definition import MPS_FLOATING_DTYPES
from opinfo.definitions import definition_of, definitions_under_test
from opinfo.op_test_case import Function, OpTestCase, function_of, ops_if_any
from opinfo.settings import settings

DEFINITIONS = definitions_under_test()
PLAIN = [op for each in DEFINITIONS for op in each.plain]
LAYOUTS_OF_ONE_SHAPE = [op for each in DEFINITIONS for op in each.entries("one_shape")]
FORWARD_AD = [op for op in PLAIN if op.supports_forward_ad]
# More elements would make a Jacobian of more than a million.
_MOST_ELEMENTS_OF_JACOBIAN = 200
# torch.testing's for float32.
_ATOL, _RTOL = 1e-5, 1.3e-6


def _call(op: OpInfo, sample: SampleInput) -> Tensor:
    result: Tensor = op(sample.input, *sample.args, **sample.kwargs)
    return result


def _not_empty(samples: Iterable[SampleInput]) -> Iterator[SampleInput]:
    return (sample for sample in samples if sample.input.dim() and sample.input.numel())


def _with_tensors(sample: SampleInput, change: Function) -> Any:
    return sample.transform(lambda leaf: change(leaf) if isinstance(leaf, Tensor) else leaf)


def _in_float64(sample: SampleInput) -> Any:
    """The sample on the CPU in float64, dtypes among its arguments too."""
    return sample.transform(
        lambda leaf: leaf.cpu().double() if isinstance(leaf, Tensor) else torch.float64
    )


class TestShapes(OpTestCase):
    """A result's size, dtype and strides are those of torch's own kernels, real or not."""

    @ops_if_any(PLAIN + LAYOUTS_OF_ONE_SHAPE, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_strides(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for sample in op.sample_inputs(device, dtype):
            ours = self.check_sample(op, sample)
            try:
                torchs = _call(op, sample)
            except NotImplementedError:
                continue  # torch has no kernel of that dtype to compare with
            self.assertEqual(ours.stride(), torchs.stride(), definition_of(op).describe(sample))

    @ops_if_any(PLAIN + LAYOUTS_OF_ONE_SHAPE, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_meta(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        self._check_without_data(op, device, dtype, lambda tensor: tensor.to("meta"))

    @ops_if_any(PLAIN + LAYOUTS_OF_ONE_SHAPE, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_fake(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        self._check_without_data(op, device, dtype, FakeTensorMode().from_tensor)

    def _check_without_data(
        self, op: OpInfo, device: str, dtype: torch.dtype, without_data: Function
    ) -> None:
        for sample in op.sample_inputs(device, dtype):
            real = self.check_sample(op, sample)
            with definition_of(op).kernels_in_place() as kernels:
                shadow = _call(op, _with_tensors(sample, without_data))
            self.assertFalse(kernels.launches)
            seen, expected = ((tensor.shape, tensor.dtype) for tensor in (shadow, real))
            self.assertEqual(seen, expected, definition_of(op).describe(sample))


class TestVmap(OpTestCase):
    """A batch gives what its members give."""

    @ops_if_any(PLAIN + LAYOUTS_OF_ONE_SHAPE, allowed_dtypes=MPS_FLOATING_DTYPES)
    def test_batch(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for sample in _not_empty(op.sample_inputs(device, dtype)):
            members = [sample.input, sample.input.flip(0)]
            for batch_dim in (0, -1):
                call = torch.func.vmap(function_of(op, sample), in_dims=batch_dim)
                results = partial(call, torch.stack(members, batch_dim))
                self._check_members(op, sample, members, results)

    @ops_if_any(PLAIN, allowed_dtypes=(torch.float32,))
    def test_batch_of_batches(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for sample in _not_empty(op.sample_inputs(device, dtype)):
            members = [sample.input * factor for factor in (1, -1, 0.5, 2)]
            batches = torch.stack([torch.stack(members[:2], -1), torch.stack(members[2:], -1)])
            call = torch.func.vmap(torch.func.vmap(function_of(op, sample), in_dims=-1))
            results = partial(_flattened, call, batches)
            self._check_members(op, sample, members, results)

    def _check_members(
        self,
        op: OpInfo,
        sample: SampleInput,
        members: list[Tensor],
        results: Callable[[], Tensor],
    ) -> None:
        for index, member in enumerate(members):
            alone = SampleInput(member, args=sample.args, kwargs=sample.kwargs)
            call = partial(_member, results, index)
            self.check_sample(op, alone, call=call, notes=f"{index} in a batch")


def _member(results: Callable[[], Tensor], index: int, sample: SampleInput) -> Tensor:
    return results()[index]


def _flattened(call: Callable[[Tensor], Tensor], batches: Tensor) -> Tensor:
    return call(batches).flatten(0, 1)


def _seed(like: Tensor) -> Tensor:
    """A tangent or cotangent of a tensor, the same for every dtype."""
    line = torch.linspace(-1, 1, like.numel(), dtype=torch.float64, device="cpu")
    return line.view(like.shape).to(like.device, like.dtype)


def _vjp(function: Function, input: Tensor) -> Any:
    result, pull_back, *_ = torch.func.vjp(function, input)
    return pull_back(_seed(result))[0]


def _jvp(function: Function, input: Tensor) -> Any:
    return torch.func.jvp(function, (input,), (_seed(input),))[1]


def _jacrev(function: Function, input: Tensor) -> Any:
    return torch.func.jacrev(function)(input)


def _jacfwd(function: Function, input: Tensor) -> Any:
    return torch.func.jacfwd(function)(input)


class TestDerivatives(OpTestCase):
    """Those of torch.func, of a result that the kernels compute."""

    @ops_if_any(PLAIN, allowed_dtypes=(torch.float32,))
    def test_vjp(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        self._check(op, _not_empty(op.sample_inputs(device, dtype)), _vjp)

    @ops_if_any(FORWARD_AD, allowed_dtypes=(torch.float32,))
    def test_jvp(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        self._check(op, _not_empty(op.sample_inputs(device, dtype)), _jvp)

    @ops_if_any(FORWARD_AD, allowed_dtypes=(torch.float32,))
    def test_jacobians(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        """Batches of the two above: a cotangent or a tangent for each element."""
        for jacobian in (_jacrev, _jacfwd):
            samples = _not_empty(op.sample_inputs(device, dtype))
            small = (s for s in samples if s.input.numel() <= _MOST_ELEMENTS_OF_JACOBIAN)
            self._check(op, small, jacobian)

    def _check(
        self,
        op: OpInfo,
        samples: Iterable[SampleInput],
        derivative: Callable[[Function, Tensor], Any],
    ) -> None:
        """Compares a derivative with float64's, beside which torch's own may be off, too."""
        for sample in samples:
            wide, narrow = _in_float64(sample), _with_tensors(sample, Tensor.cpu)
            exact = derivative(function_of(op, wide), wide.input)
            torchs = derivative(function_of(op, narrow), narrow.input)
            with definition_of(op).kernels_in_place() as kernels:
                actual = derivative(function_of(op, sample), sample.input)
            kernels.require_launches()
            self.evidence.launches.update(kernels.launches)
            due = 2 * float((torchs.double() - exact).abs().max())
            self.assertEqual(
                actual.cpu().double(),
                exact,
                definition_of(op).describe(sample),
                atol=_ATOL + due,
                rtol=_RTOL,
            )


for _test_class in (TestShapes, TestVmap, TestDerivatives):
    instantiate_device_type_tests(
        _test_class, globals(), only_for=settings().device_type, allow_mps=True
    )
del _test_class  # a class that pytest would collect uninstantiated

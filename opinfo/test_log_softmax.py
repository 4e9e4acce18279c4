"""What holds for log_softmax alone: the loss that is made of it, and memory shared with ``out``."""

# mypy: allow-subclassing-any, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import make_tensor
from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests
from torch.testing._internal.common_utils import parametrize
from torch.testing._internal.opinfo.core import SampleInput

from mpskit.verify.accuracy import unit_roundoff
from opinfo.definition import MPS_FLOATING_DTYPES
from opinfo.definitions.log_softmax import LOG_SOFTMAX
from opinfo.definitions.log_softmax.large_index import FAR_APART, far_apart
from opinfo.op_test_case import OpTestCase
from opinfo.settings import settings

IGNORED = -100
# Logits with the classes in dimension 1, and the spatial dimensions that targets share with them.
LOGITS = {"rows": (32, 10), "wide": (4, 4099), "sequence": (3, 21, 17), "image": (2, 19, 12, 10)}
REDUCTIONS = ("none", "mean", "sum")


class TestCrossEntropy(OpTestCase):
    """Loss and gradient against float64; the backward is torch's own."""

    @dtypes(*MPS_FLOATING_DTYPES)
    @parametrize("logits", LOGITS)
    @parametrize("reduction", REDUCTIONS)
    @parametrize("ignore", [False, True])
    def test_loss_and_gradient(
        self, device: str, dtype: torch.dtype, logits: str, reduction: str, ignore: bool
    ) -> None:
        shape = LOGITS[logits]
        input = make_tensor(shape, dtype=dtype, device=device, requires_grad=True)
        target = torch.randint(shape[1], (shape[0], *shape[2:]), device=device)
        if ignore:
            target[target % 3 == 0] = IGNORED
        exact = input.detach().cpu().double().requires_grad_()
        expected = _cross_entropy(exact, target.cpu(), reduction)
        expected.sum().backward()

        with LOG_SOFTMAX.kernels_in_place() as kernels:
            loss = F.cross_entropy(input, target, ignore_index=IGNORED, reduction=reduction)
            loss.sum().backward()
        self.assertTrue(kernels.launches)
        self.evidence.launches.update(kernels.launches)
        self._check("loss", loss, expected, target.numel())
        self._check("gradient", input.grad, exact.grad, target.numel())

    def _check(self, what: str, actual: Any, expected: Any, count: int) -> None:
        """Errs by a few roundings of the largest value; a float32 sum by as many as its terms."""
        scale = max(1.0, expected.abs().max().item())
        allowed = 8 * unit_roundoff(actual.dtype) * scale
        allowed += count * unit_roundoff(torch.float32) * scale
        error = (actual.detach().cpu().double() - expected.detach()).abs().max().item()
        self.assertLessEqual(error, allowed, f"{what}: off by {error:.3g}")


def _cross_entropy(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    """Negative log-likelihood of the targets that are not IGNORED; classes in dimension 1."""
    log_sum = input.exp().sum(1).log()
    kept = target != IGNORED
    chosen = input.gather(1, target.where(kept, 0).unsqueeze(1)).squeeze(1)
    loss = torch.where(kept, log_sum - chosen, 0)
    if reduction == "none":
        return loss
    return loss.sum() / (kept.sum() if reduction == "mean" else 1)


class TestSharedMemory(OpTestCase):
    """``out`` in the memory of the input, element on element and shifted."""

    @dtypes(*MPS_FLOATING_DTYPES)
    @parametrize("dim", [0, 1])
    @parametrize("length", [1, 33, 1025, 4099, 16385])
    def test_in_place(self, device: str, dtype: torch.dtype, length: int, dim: int) -> None:
        input = make_tensor((length, 3), dtype=dtype, device=device)
        input = input if dim == 0 else input.t().contiguous()
        self._check_shared(input, input, dim)

    @dtypes(*MPS_FLOATING_DTYPES)
    @parametrize("shift", [1, 46, 4099])
    def test_shifted(self, device: str, dtype: torch.dtype, shift: int) -> None:
        memory = make_tensor((3 * 4099 + shift,), dtype=dtype, device=device)
        input = memory[:-shift].view(3, 4099)
        self._check_shared(input, memory[shift:].view(3, 4099), 1)

    @dtypes(*MPS_FLOATING_DTYPES)
    def test_transposed(self, device: str, dtype: torch.dtype) -> None:
        input = make_tensor((70, 70), dtype=dtype, device=device)
        self._check_shared(input, input.t(), 1)

    def _check_shared(self, input: Tensor, out: Tensor, dim: int) -> None:
        original = SampleInput(input.clone(), args=(dim,))
        with LOG_SOFTMAX.kernels_in_place() as kernels:
            LOG_SOFTMAX.write(out, SampleInput(input, args=(dim,)))
        self.check_result(LOG_SOFTMAX, original, out, kernels.launches, notes="out in the input")


class TestLargeOutput(OpTestCase):
    """``out`` with elements farther apart than 32 bits can count."""

    @dtypes(*MPS_FLOATING_DTYPES)
    def test_sparse_out(self, device: str, dtype: torch.dtype) -> None:
        for name, size, strides in FAR_APART:
            for dim in range(len(size)):
                sample = SampleInput(make_tensor(size, dtype=dtype, device=device), args=(dim,))
                out = far_apart(size, strides, dtype)
                with LOG_SOFTMAX.kernels_in_place() as kernels:
                    LOG_SOFTMAX.write(out, sample)
                self.check_result(LOG_SOFTMAX, sample, out, kernels.launches, notes=f"out {name}")


class TestRefusals(OpTestCase):
    """What only a direct call of the function that the patch implements can ask for."""

    def test_half_to_float(self, device: str) -> None:
        input = make_tensor((3, 5), dtype=torch.float16, device=device)
        with (
            LOG_SOFTMAX.kernels_in_place(),
            self.assertRaisesRegex(
                RuntimeError, "log_softmax with half to float conversion is not supported on MPS"
            ),
        ):
            torch.ops.aten._log_softmax(input, 1, True)


for _test_class in (TestCrossEntropy, TestSharedMemory, TestRefusals):
    instantiate_device_type_tests(
        _test_class, globals(), only_for=settings().device_type, allow_mps=True
    )
del _test_class  # a class that pytest would collect uninstantiated
# Only on the CPU can memory be mapped sparsely; 32-bit offsets are the plan's, on every device.
instantiate_device_type_tests(TestLargeOutput, globals(), only_for="cpu")

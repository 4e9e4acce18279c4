"""What holds for log_softmax alone: losses made of it, training, memory shared with ``out``."""

# mypy: allow-subclassing-any, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
from opinfo.definitions.log_softmax_backward import LOG_SOFTMAX_BACKWARD
from opinfo.definitions.log_softmax_backward.samples import output_like
from opinfo.op_test_case import OpTestCase
from opinfo.settings import settings

OP = LOG_SOFTMAX.name
IGNORED = -100
# Logits with the classes in dimension 1, and the spatial dimensions that targets share with them.
LOGITS = {"rows": (32, 10), "wide": (4, 4099), "sequence": (3, 21, 17), "image": (2, 19, 12, 10)}
REDUCTIONS = ("none", "mean", "sum")


class TestLosses(OpTestCase):
    """What is made of log_softmax, and its gradient, against float64."""

    @dtypes(*MPS_FLOATING_DTYPES)
    @parametrize("logits", LOGITS)
    @parametrize("reduction", REDUCTIONS)
    @parametrize("ignore", [False, True])
    def test_cross_entropy(
        self, device: str, dtype: torch.dtype, logits: str, reduction: str, ignore: bool
    ) -> None:
        input, target = _logits_and_target(LOGITS[logits], device, dtype)
        if ignore:
            target[target % 3 == 0] = IGNORED
        exact = input.detach().cpu().double().requires_grad_()
        expected = _cross_entropy(exact, target.cpu(), reduction)
        expected.sum().backward()

        with self._kernels():
            loss = F.cross_entropy(input, target, ignore_index=IGNORED, reduction=reduction)
            loss.sum().backward()
        self._check("loss", loss, expected, target.numel())
        self._check("gradient", input.grad, exact.grad, target.numel())

    @dtypes(*MPS_FLOATING_DTYPES)
    @parametrize("logits", ["rows", "sequence", "image"])  # half cannot hold a wide row's smoothing
    @parametrize("options", ["weight", "label_smoothing", "probabilities"])
    def test_module(self, device: str, dtype: torch.dtype, logits: str, options: str) -> None:
        input, target = _logits_and_target(LOGITS[logits], device, dtype)
        classes = input.shape[1]
        weight = torch.linspace(0.5, 2, classes) if options == "weight" else None
        loss = torch.nn.CrossEntropyLoss(
            None if weight is None else weight.to(device, dtype),
            label_smoothing=0.25 if options == "label_smoothing" else 0,
        )
        if options == "probabilities":
            target = torch.softmax(make_tensor(input.shape, dtype=dtype, device=device), 1)
        exact = input.detach().cpu().double().requires_grad_()
        of_float64 = torch.nn.CrossEntropyLoss(
            None if loss.weight is None else loss.weight.cpu().double(),
            label_smoothing=loss.label_smoothing,
        )
        expected = of_float64(
            exact, target.cpu().double() if target.dtype == dtype else target.cpu()
        )
        expected.backward()

        with self._kernels():
            result = loss(input, target)
            result.backward()
        self._check("loss", result, expected, input.numel())
        self._check("gradient", input.grad, exact.grad, input.numel())

    @dtypes(*MPS_FLOATING_DTYPES)
    @parametrize("dim", [0, 1, 2])
    def test_masked(self, device: str, dtype: torch.dtype, dim: int) -> None:
        input = make_tensor((7, 33, 5), dtype=dtype, device=device, requires_grad=True)
        mask = make_tensor(input.shape, dtype=torch.bool, device=device)
        mask.select(dim, 0).fill_(True)  # a row with no element left has no gradient
        exact = input.detach().cpu().double().requires_grad_()
        kept = exact.where(mask.cpu(), -torch.inf)
        expected = kept - kept.logsumexp(dim, keepdim=True)
        expected.where(mask.cpu(), 0).sum().backward()

        with self._kernels():
            result = torch.masked.log_softmax(input, dim, mask=mask)
            result.where(mask, 0).sum().backward()
        self._check("result", result.where(mask, 0), expected.where(mask.cpu(), 0), 33)
        self._check("gradient", input.grad, exact.grad, 33)

    @contextmanager
    def _kernels(self) -> Iterator[None]:
        """Both forward and backward must run on them."""
        with LOG_SOFTMAX.kernels_in_place() as kernels:
            yield
        kernels.require_launches("log_softmax_backward")
        self.assertTrue([name for name in kernels.launches if "backward" not in name])
        self.evidence.launches.update(kernels.launches)

    def _check(self, what: str, actual: Any, expected: Any, count: int) -> None:
        """Errs by a few roundings of the largest value; a float32 sum by as many as its terms."""
        scale = max(1.0, expected.abs().max().item())
        allowed = 8 * unit_roundoff(actual.dtype) * scale
        allowed += count * unit_roundoff(torch.float32) * scale
        error = (actual.detach().cpu().double() - expected.detach()).abs().max().item()
        self.assertLessEqual(error, allowed, f"{what}: off by {error:.3g}")


def _logits_and_target(
    shape: tuple[int, ...], device: str, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    input = make_tensor(shape, dtype=dtype, device=device, requires_grad=True)
    return input, torch.randint(shape[1], (shape[0], *shape[2:]), device=device)


def _cross_entropy(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    """Negative log-likelihood of the targets that are not IGNORED; classes in dimension 1."""
    log_sum = input.exp().sum(1).log()
    kept = target != IGNORED
    chosen = input.gather(1, target.where(kept, 0).unsqueeze(1)).squeeze(1)
    loss = torch.where(kept, log_sum - chosen, 0)
    if reduction == "none":
        return loss
    return loss.sum() / (kept.sum() if reduction == "mean" else 1)


class TestTraining(OpTestCase):
    """A small classifier learns on the kernels as it does on the CPU."""

    STEPS = 200

    @dtypes(torch.float32, torch.bfloat16)
    def test_loss_curve(self, device: str, dtype: torch.dtype) -> None:
        """The curves part by no more than the steps' errors add up to.

        A step is off by a few roundings of float32, which steps near a minimum do not amplify:
        4 u a step, u = 2^-24. In bfloat the parameters themselves are rounded at every step, by
        more than the kernels err: 8 u in all, u = 2^-8. Both relative to the first loss.
        """
        on_cpu = self._train(torch.device("cpu"), dtype)
        with LOG_SOFTMAX.kernels_in_place() as kernels:
            on_kernels = self._train(torch.device(device), dtype)
        self.assertEqual(kernels.launches.total(), 2 * self.STEPS)
        self.evidence.launches.update(kernels.launches)
        roundings = 4 * self.STEPS if dtype == torch.float32 else 8
        apart = (on_cpu - on_kernels).abs().max()
        self.assertLessEqual(apart, roundings * unit_roundoff(dtype) * on_cpu[0])
        self.assertLess(on_kernels[-1], 0.05 * on_kernels[0])

    def _train(self, device: torch.device, dtype: torch.dtype) -> Tensor:
        """The losses of full-batch gradient descent on ten clusters of points."""
        torch.manual_seed(0)
        target = torch.arange(240) % 10
        points = torch.randn(10, 16)[target] + torch.randn(240, 16)
        model = torch.nn.Sequential(
            torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10)
        ).to(device, dtype)
        points, target = points.to(device, dtype), target.to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        losses = []
        for _ in range(self.STEPS):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(points), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return torch.tensor(losses)


class TestSharedMemory(OpTestCase):
    """``out`` in the memory of an input, element on element and shifted."""

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
        """Forward, then the backward with ``out`` in either of its inputs."""
        other = output_like(torch.empty_like(input).copy_(input), dim)
        forward = SampleInput(input, args=(dim,))
        in_grad = SampleInput(input, args=(other, dim, input.dtype))
        in_output = SampleInput(other, args=(input, dim, input.dtype))
        original = input.clone()
        for definition, sample in (
            (LOG_SOFTMAX, forward),
            (LOG_SOFTMAX_BACKWARD, in_grad),
            (LOG_SOFTMAX_BACKWARD, in_output),
        ):
            untouched = sample.transform(lambda leaf: leaf.clone() if leaf is input else leaf)
            with definition.kernels_in_place() as kernels:
                definition.write(out, sample)
            notes = "out in the input"
            self.check_result(definition, untouched, out, kernels.launches, notes=notes)
            input.copy_(original)


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

    @dtypes(*MPS_FLOATING_DTYPES)
    def test_sparse_grad_input(self, device: str, dtype: torch.dtype) -> None:
        for name, size, strides in FAR_APART:
            for dim in range(len(size)):
                grad, output = (make_tensor(size, dtype=dtype, device=device) for _ in range(2))
                sample = SampleInput(grad, args=(output_like(output, dim), dim, dtype))
                out = far_apart(size, strides, dtype)
                with LOG_SOFTMAX_BACKWARD.kernels_in_place() as kernels:
                    LOG_SOFTMAX_BACKWARD.write(out, sample)
                notes = f"out {name}"
                self.check_result(LOG_SOFTMAX_BACKWARD, sample, out, kernels.launches, notes=notes)


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


_test_classes = {
    TestLosses: True,
    TestTraining: True,
    TestSharedMemory: True,
    # On CUDA, torch.log_softmax itself asks for the conversion; see Implementation.convert.
    TestRefusals: settings().device_type != "cuda",
    # Only on the CPU can memory be mapped sparsely; 32-bit offsets are the plan's, on every device.
    TestLargeOutput: settings().device_type == "cpu",
}
for _test_class, _runs_here in _test_classes.items():
    if _runs_here:
        instantiate_device_type_tests(
            _test_class, globals(), only_for=settings().device_type, allow_mps=True
        )
    else:
        del globals()[_test_class.__name__]  # which pytest would collect uninstantiated
del _test_class, _test_classes

"""The base of the suite's test classes."""

# mypy: allow-subclassing-any, allow-untyped-calls

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.testing._internal.common_device_type import ops
from torch.testing._internal.common_utils import TestCase
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from mpskit.verify.accuracy import compare
from opinfo.definition import Definition, Forcing, dtype_name
from opinfo.definitions import definition_of
from opinfo.evidence import Evidence

Call = Callable[[SampleInput], Tensor]
Function = Callable[[Tensor], Tensor]


def function_of(op: OpInfo, sample: SampleInput) -> Function:
    """The op, of the sample's input alone."""
    return lambda input: op(input, *sample.args, **sample.kwargs)


class ops_if_any(ops):
    """PyTorch's ``@ops``, for a test that no definition may have entries for."""

    def _parametrize_test(self, *args: Any) -> Iterator[Any]:
        if self.op_list:
            yield from super()._parametrize_test(*args)


class OpTestCase(TestCase):
    """Runs samples on the kernels under test and notes what was run."""

    evidence: Evidence

    def setUp(self) -> None:
        super().setUp()
        self.evidence = Evidence()

    def check_sample(
        self,
        op: OpInfo,
        sample: SampleInput,
        *,
        call: Call | None = None,
        forcing: Forcing | None = None,
        notes: str = "",
    ) -> Tensor:
        """Runs a sample on the kernels and compares it with the float64 reference.

        Args:
            call: how the op is called, if not as the OpInfo entry does.
            forcing: the branch to take.
            notes: what the message says besides the sample and the branch.

        Returns:
            the result.
        """
        definition = definition_of(op)
        with self._sample_index_noted(), definition.kernels_in_place(forcing) as kernels:
            actual = call(sample) if call else op(sample.input, *sample.args, **sample.kwargs)
        if forcing:
            notes = f"{notes} forced {forcing.name}".strip()
            self.assertEqual(set(kernels.launches), forcing.launches(actual.dtype), notes)
        plain = call is None and forcing is None
        cpu = _on_the_cpu(op, sample) if plain else None
        self.check_result(definition, sample, actual, kernels.launches, notes=notes, cpu=cpu)
        return actual

    def check_result(
        self,
        definition: Definition,
        sample: SampleInput,
        actual: Tensor,
        launches: Counter[str],
        *,
        notes: str = "",
        cpu: Tensor | None = None,
    ) -> None:
        """Compares a result of the kernels with the reference of its sample.

        Args:
            notes: what the message says besides the sample.
            cpu: what torch's CPU kernel makes of the sample, for the report.
        """
        with self._sample_index_noted():
            self._check_result(
                definition, sample, actual, launches, definition.describe(sample, notes), cpu
            )

    def _check_result(
        self,
        definition: Definition,
        sample: SampleInput,
        actual: Tensor,
        launches: Counter[str],
        description: str,
        cpu: Tensor | None,
    ) -> None:
        expected = definition.reference(sample)
        dtype = sample.kwargs.get("dtype") or sample.input.dtype
        if (actual.shape, actual.dtype) != (expected.shape, dtype):
            self.fail(
                f"{description}: the result is {dtype_name(actual.dtype)}{list(actual.shape)}, "
                f"expected {dtype_name(dtype)}{list(expected.shape)}"
            )
        if bool(launches) != bool(expected.numel()):
            self.fail(f"{description}: launched {dict(launches) or 'no kernel'}")
        allowed = definition.tolerance(sample, expected, dtype)
        comparison = compare(actual, expected, allowed)
        self.evidence.add(
            definition.name,
            sample.input,
            actual,
            launches=launches,
            comparison=comparison,
            cpu=None if cpu is None else compare(cpu, expected, allowed),
            description=description,
            index=self._sample_index(),
        )
        if comparison.failing:
            self.fail(f"{description}: {comparison}; launched {', '.join(launches)}")

    @contextmanager
    def _sample_index_noted(self) -> Iterator[None]:
        """Keeps the index of a sample that fails."""
        try:
            yield
        except Exception:
            self.evidence.sample_index = self._sample_index()
            raise

    def _sample_index(self) -> int | None:
        """Index of the OpInfo sample input under test, which torch notes on the test function."""
        tracked = getattr(getattr(self, self._testMethodName), "tracked_input", None)
        return tracked.index if tracked else None


def _on_the_cpu(op: OpInfo, sample: SampleInput) -> Tensor | None:
    """What torch's own CPU kernel makes of a sample; None where it takes no such dtype."""
    moved = sample.transform(lambda value: value.cpu() if isinstance(value, Tensor) else value)
    try:
        result: Tensor = op(moved.input, *moved.args, **moved.kwargs)
    except NotImplementedError:
        return None
    return result

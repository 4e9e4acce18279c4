"""The base of the suite's test classes."""

# mypy: allow-subclassing-any, allow-untyped-calls

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.testing._internal.common_device_type import ops
from torch.testing._internal.common_utils import TestCase, get_tracked_input
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from mpskit.verify.accuracy import compare
from opinfo.definition import Definition, Forcing, dtype_name
from opinfo.definitions import definition_of
from opinfo.evidence import Evidence

Call = Callable[[SampleInput], Tensor]


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
        self.check_result(definition, sample, actual, kernels.launches, notes=notes)
        return actual

    def check_result(
        self,
        definition: Definition,
        sample: SampleInput,
        actual: Tensor,
        launches: Counter[str],
        *,
        notes: str = "",
    ) -> None:
        """Compares a result of the kernels with the reference of its sample."""
        with self._sample_index_noted():
            self._check_result(
                definition, sample, actual, launches, definition.describe(sample, notes)
            )

    def _check_result(
        self,
        definition: Definition,
        sample: SampleInput,
        actual: Tensor,
        launches: Counter[str],
        description: str,
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
        comparison = compare(actual, expected, definition.tolerance(sample, expected, dtype))
        self.evidence.add(dtype, launches, comparison, description)
        if comparison.failing:
            self.fail(f"{description}: {comparison}; launched {', '.join(launches)}")

    @contextmanager
    def _sample_index_noted(self) -> Iterator[None]:
        """Keeps the index of a sample that fails: the whole stack is searched for it."""
        try:
            yield
        except Exception:
            tracked = get_tracked_input()
            self.evidence.sample_index = tracked.index if tracked else None
            raise

"""The measure of errors and the comparison with a reference."""

from __future__ import annotations

import pytest
import torch

from mpskit.verify.accuracy import compare, rounding_error, ulp

nan, inf = torch.nan, torch.inf
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [1.0, 1.5, 2.0, -3.0, 1000.0])
def test_ulp_is_the_distance_to_the_next_number(dtype: torch.dtype, value: float) -> None:
    number = torch.tensor(abs(value), dtype=dtype)
    distance = (torch.nextafter(number, torch.tensor(inf, dtype=dtype)) - number).double()
    assert ulp(torch.tensor(value, dtype=torch.float64), dtype) == distance


def test_ulp_is_no_finer_than_at_one() -> None:
    tiny = torch.tensor([0.0, 1e-30, -0.25], dtype=torch.float64)
    assert ulp(tiny, torch.float32).tolist() == [2.0**-23] * 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_number_is_rounded_farther_than_the_bound(dtype: torch.dtype) -> None:
    smallest = torch.finfo(dtype).smallest_normal
    values = torch.cat([torch.linspace(-9, 9, 999), torch.linspace(-9, 9, 999) * smallest]).double()
    assert ((values.to(dtype).double() - values).abs() <= rounding_error(values, dtype)).all()


def _compare(actual: list[float], expected: list[float], dtype: torch.dtype = torch.float32):
    reference = torch.tensor(expected, dtype=torch.float64)
    return compare(torch.tensor(actual, dtype=dtype), reference, torch.full_like(reference, 1e-6))


def test_reports_the_element_that_exceeds_its_tolerance_by_most() -> None:
    comparison = _compare([1.0, 2.0 + 2**-10, 3.5], [1.0, 2.0, 3.0])
    assert comparison.index == (2,)
    assert comparison.failing == 2
    assert comparison.error_ulp == comparison.worst_ulp == 0.5 * 2**22
    assert "expected 3.0, got 3.5" in str(comparison)


def test_reports_the_worst_error_where_all_are_tolerable() -> None:
    comparison = _compare([1.0 + 2**-22, 2.0], [1.0, 2.0])
    assert comparison.index is None
    assert comparison.worst_ulp == 2


def test_not_a_number_and_infinities_must_be_met() -> None:
    assert _compare([nan, -inf, inf], [nan, -inf, inf]).failing == 0
    assert _compare([0.0, 0.0, 0.0], [nan, -inf, inf]).failing == 3
    assert _compare([-inf, inf, nan], [nan, -inf, inf]).failing == 3
    assert _compare([nan, inf, -inf], [1.0, 1.0, 1.0]).failing == 3


def test_what_a_dtype_cannot_hold_is_expected_as_infinity() -> None:
    assert _compare([-inf], [-1e5], torch.float16).failing == 0
    assert _compare([-65504.0], [-1e5], torch.float16).failing == 1


def test_no_elements_are_no_error() -> None:
    assert _compare([], []).failing == 0

"""The conformance suite: each module checks a section of the Metal Shading Language Specification.

A module names its section with ``pytestmark = pytest.mark.conformance("6.5 Math functions")``; the
summary of a run counts by section. Expected values come from the specification's tables and from
numpy and Python's integers, never from the library under test.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

ON_THE_CPU = "the cpu backend compiles the same source and passes the same test"


@pytest.fixture(
    scope="module",
    params=[
        "cpu",
        pytest.param("cuda", marks=pytest.mark.requires_cuda(ON_THE_CPU)),
        pytest.param("mps", marks=pytest.mark.requires_mps(ON_THE_CPU)),
    ],
)
def backend(request: pytest.FixtureRequest) -> str:
    """A backend's name, which is also that of its tensors' device."""
    return request.param


@pytest.fixture
def count(request: pytest.FixtureRequest) -> Callable[[int], None]:
    """Adds to the number of values that this test has compared, for the summary."""
    return lambda values: request.node.user_properties.append(("conformance values", values))


@pytest.fixture
def differs(request: pytest.FixtureRequest, backend: str) -> Callable[..., None]:
    """Marks a test as one whose expected values a backend does not give, and says why."""

    def mark(on: str, reason: str, *, strict: bool = True) -> None:
        if backend == on:
            request.node.add_marker(pytest.mark.xfail(reason=reason, strict=strict))

    return mark

"""Tables 6.14 to 6.18: simd_* and quad_* functions, whole groups and parts of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msl_groups
import numpy as np
import pytest
from msl_groups import MASKS, THREADS, Group

SECTIONS = {
    Group("simd", 32): pytest.mark.conformance("6.9.2 SIMD-group functions"),
    Group("quad", 4): pytest.mark.conformance("6.9.3 Quad-group functions"),
}
CASES = [
    pytest.param(group, text, type, marks=section, id=f"{text}-{type}")
    for group, section in SECTIONS.items()
    for text, type in msl_groups.cases(group)
]
GROUPS = [
    pytest.param(group, marks=section, id=group.prefix) for group, section in SECTIONS.items()
]


@pytest.fixture(scope="module")
def results(compile_shader) -> Callable[[Group, str, int], dict[str, list[np.ndarray]]]:
    compiled = cache(lambda group: compile_shader(msl_groups.source(group)))
    return cache(lambda group, type, mask: msl_groups.launch(compiled(group), group, type, mask))


@pytest.mark.parametrize(("group", "text", "type"), CASES)
def test_function(results, count, group: Group, text: str, type: str) -> None:
    operation = next(o for o in msl_groups.operations(group, type) if o.text == text)
    for mask in MASKS:
        values = results(group, type, mask)[text]
        count(msl_groups.compare(values, operation, group, type, mask))


@pytest.fixture(scope="module")
def ballot_box(compile_shader) -> Callable[[Group], Any]:
    return cache(lambda group: compile_shader(msl_groups.vote_source(group)))


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("mask", MASKS, ids=hex)
@pytest.mark.parametrize("ayes", ["some", "all", "none"])
def test_votes(ballot_box, count, ayes: str, mask: int, group: Group) -> None:
    voices = [ayes == "all" or (ayes == "some" and i % 3 != 1) for i in range(THREADS)]
    rows = msl_groups.cast_votes(ballot_box(group), group, mask, voices)
    for (text, reference), row in zip(msl_groups.votes(group).items(), rows, strict=True):
        for threads in msl_groups.groups(group):
            active = msl_groups.active_lanes(group, threads, mask)
            said = [voices[i] for i in threads] + [False] * (group.lanes - len(threads))
            for lane, thread in enumerate(threads):
                if active[lane]:
                    assert row[thread] == reference(said, active, lane), (text, thread)
                    count(1)

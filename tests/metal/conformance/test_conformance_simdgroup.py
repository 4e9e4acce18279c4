"""Tables 6.14 and 6.15: simd_* functions, whole groups and parts of them."""

from __future__ import annotations

from collections.abc import Callable

import msl_groups
import numpy as np
import pytest
from msl_groups import MASKS, THREADS, Group

pytestmark = pytest.mark.conformance("6.9.2 SIMD-group functions")

GROUP = Group("simd", 32)
CASES = msl_groups.cases(GROUP)


@pytest.fixture(scope="module")
def results(compile_shader) -> Callable[[str, int], dict[str, list[np.ndarray]]]:
    library = compile_shader(msl_groups.source(GROUP))
    known: dict[tuple[str, int], dict[str, list[np.ndarray]]] = {}

    def launch(type: str, mask: int) -> dict[str, list[np.ndarray]]:
        if (type, mask) not in known:
            known[type, mask] = msl_groups.launch(library, GROUP, type, mask)
        return known[type, mask]

    return launch


@pytest.mark.parametrize(("text", "type"), CASES, ids=[f"{text}-{type}" for text, type in CASES])
def test_simd_function(results, count, text: str, type: str) -> None:
    operation = next(o for o in msl_groups.operations(GROUP, type) if o.text == text)
    for mask in MASKS:
        count(msl_groups.compare(results(type, mask)[text], operation, GROUP, type, mask))


@pytest.fixture(scope="module")
def ballot_box(compile_shader):
    return compile_shader(msl_groups.vote_source(GROUP))


@pytest.mark.parametrize("mask", MASKS, ids=hex)
@pytest.mark.parametrize("ayes", ["some", "all", "none"])
def test_simd_votes(ballot_box, count, mask: int, ayes: str) -> None:
    voices = [ayes == "all" or (ayes == "some" and i % 3 != 1) for i in range(THREADS)]
    rows = msl_groups.cast_votes(ballot_box, GROUP, mask, voices)
    for (text, reference), row in zip(msl_groups.votes(GROUP).items(), rows, strict=True):
        for threads in msl_groups.groups(GROUP):
            active = msl_groups.active_lanes(GROUP, threads, mask)
            said = [voices[i] for i in threads] + [False] * (GROUP.lanes - len(threads))
            for lane, thread in enumerate(threads):
                if active[lane]:
                    assert row[thread] == reference(said, active, lane), (text, thread)
                    count(1)

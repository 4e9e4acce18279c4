"""Section 1.5: ``__METAL_VERSION__``, and what a version of the language adds."""

from __future__ import annotations

import pytest
from msl_evaluation import Check, evaluate, mismatches, size

from mpskit.metal import CompileError

pytestmark = pytest.mark.conformance("1.5 Language versions")

VERSIONS = (310, 320, 400)
CHECKS = {
    version: [
        Check("__METAL_VERSION__", "int", version),
        Check("__METAL_VERSION__ >= 320 ? 1 : 0", "int", version >= 320),
        Check("nextafter(half(1), half(2))", "half", 1 + 2.0**-10),
        Check("bfloat(1) + bfloat(2)", "bfloat", 3),
        Check("fabs(float(bfloat(-2)))", "float", 2),
        # Before Metal 4 the math functions take a bfloat as a float.
        Check("exp2(bfloat(3))", "bfloat" if version >= 400 else "float", 8),
        Check("sqrt(bfloat4(4, 9, 16, 25)[1])", "bfloat" if version >= 400 else "float", 3),
        Check("isnan(bfloat(NAN))", "bool", 1),
    ]
    for version in VERSIONS
}


@pytest.fixture(autouse=True)
def not_on_a_mac(backend: str, differs) -> None:
    differs("mps", "torch.mps.compile_shader chooses the version itself", strict=False)


@pytest.mark.parametrize("version", VERSIONS)
def test_version(compile_shader, count, version: int) -> None:
    values = evaluate(compile_shader, CHECKS[version], metal_version=version)
    assert mismatches(CHECKS[version], values) == []
    count(size(CHECKS[version]))


def test_what_a_version_adds(compile_shader, count) -> None:
    packed = [Check("pack_float_to_snorm10a2(float4(1, -1, 0, 1))", "uint", 0x400805FF)]
    assert mismatches(packed, evaluate(compile_shader, packed, metal_version=400)) == []
    with pytest.raises(CompileError, match="pack_float_to_snorm10a2"):
        evaluate(compile_shader, packed, metal_version=320)
    count(2)

"""Numeric limits, the constants of tables 6.5 to 6.7, and type traits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msl_evaluation import Check, evaluate, mismatches, size
from msl_formats import BFLOAT, FLOAT, FLOATS, HALF, INTEGERS

pytestmark = pytest.mark.conformance("6.1 Limits, constants and type traits")

INF, NAN = math.inf, math.nan
DECIMAL_DIGITS = {"float": 6, "half": 3, "bfloat": 2}


def float_limits(name: str) -> list[Check]:
    format = FLOATS[name]
    limits = f"numeric_limits<{name}>"
    values = {
        "max": format.largest, "lowest": -format.largest, "min": format.smallest_normal,
        "denorm_min": format.smallest, "epsilon": format.epsilon, "infinity": INF,
        "quiet_NaN": NAN, "round_error": 0.5,
    }  # fmt: skip
    numbers = {
        "digits": format.digits, "radix": 2, "max_exponent": format.max_exponent,
        "min_exponent": 3 - format.max_exponent, "digits10": DECIMAL_DIGITS[name],
        "max_digits10": math.ceil(1 + format.digits * math.log10(2)),
        "max_exponent10": math.floor(math.log10(format.largest)),
        "min_exponent10": math.ceil(math.log10(format.smallest_normal)),
    }  # fmt: skip
    flags = {
        "is_specialized": 1, "is_signed": 1, "is_integer": 0, "is_exact": 0, "has_infinity": 1,
        "has_quiet_NaN": 1, "is_bounded": 1, "is_modulo": 0,
    }  # fmt: skip
    return [
        *(Check(f"{limits}::{function}()", name, value) for function, value in values.items()),
        *(Check(f"int({limits}::{constant})", "int", value) for constant, value in numbers.items()),
        *(Check(f"bool({limits}::{constant})", "bool", value) for constant, value in flags.items()),
        Check(f"numeric_limits<{name}2>::max()", f"{name}2", [format.largest] * 2),
        Check(f"numeric_limits<const {name}>::epsilon()", name, format.epsilon),
    ]


def integer_limits(name: str) -> list[Check]:
    format = INTEGERS[name]
    limits = f"numeric_limits<{name}>"
    digits = format.width - format.signed
    return [
        Check(f"{limits}::max()", name, format.high), Check(f"{limits}::min()", name, format.low),
        Check(f"{limits}::lowest()", name, format.low),
        Check(f"int({limits}::digits)", "int", digits),
        Check(f"int({limits}::digits10)", "int", int(digits * math.log10(2))),
        Check(f"bool({limits}::is_signed)", "bool", format.signed),
        Check(f"bool({limits}::is_integer)", "bool", 1),
        Check(f"bool({limits}::is_exact)", "bool", 1),
        Check(f"bool({limits}::is_modulo)", "bool", not format.signed),
        Check(f"numeric_limits<{name}3>::min()", f"{name}3", [format.low] * 3),
    ]  # fmt: skip


MATH = {
    "E": math.e, "LOG2E": math.log2(math.e), "LOG10E": math.log10(math.e), "LN2": math.log(2),
    "LN10": math.log(10), "PI": math.pi, "PI_2": math.pi / 2, "PI_4": math.pi / 4,
    "1_PI": 1 / math.pi, "2_PI": 2 / math.pi, "2_SQRTPI": 2 / math.sqrt(math.pi),
    "SQRT2": math.sqrt(2), "SQRT1_2": math.sqrt(0.5),
}  # fmt: skip
SUFFIXES = {"F": "float", "H": "half", "BF": "bfloat"}
CONSTANTS = [
    *(
        Check(f"M_{constant}_{suffix}", type, value)
        for suffix, type in SUFFIXES.items()
        for constant, value in MATH.items()
    ),
    Check("MAXFLOAT", "float", FLOAT.largest), Check("HUGE_VALF", "float", INF),
    Check("INFINITY", "float", INF), Check("NAN", "float", NAN),
    Check("MAXHALF", "half", HALF.largest),
    Check("HUGE_VALH", "half", INF), Check("MAXBFLOAT", "bfloat", BFLOAT.largest),
    Check("HUGE_VALBF", "bfloat", INF),
    Check("FLT_MAX", "float", FLOAT.largest), Check("FLT_MIN", "float", FLOAT.smallest_normal),
    Check("FLT_EPSILON", "float", FLOAT.epsilon), Check("FLT_DIG", "int", 6),
    Check("FLT_MANT_DIG", "int", 24), Check("FLT_MAX_EXP", "int", 128),
    Check("FLT_MIN_EXP", "int", -125), Check("FLT_RADIX", "int", 2),
    Check("FLT_MAX_10_EXP", "int", 38), Check("FLT_MIN_10_EXP", "int", -37),
    Check("HALF_MAX", "half", HALF.largest), Check("HALF_MIN", "half", HALF.smallest_normal),
    Check("HALF_EPSILON", "half", HALF.epsilon), Check("HALF_DIG", "int", 3),
    Check("HALF_MANT_DIG", "int", 11), Check("HALF_MAX_EXP", "int", 16),
    Check("HALF_MIN_EXP", "int", -13), Check("HALF_RADIX", "int", 2),
    Check("CHAR_BIT", "int", 8), Check("SCHAR_MAX", "int", 127), Check("SCHAR_MIN", "int", -128),
    Check("UCHAR_MAX", "int", 255), Check("SHRT_MAX", "int", 32767),
    Check("SHRT_MIN", "int", -32768),
    Check("USHRT_MAX", "int", 65535), Check("INT_MAX", "int", 2**31 - 1),
    Check("INT_MIN", "int", -(2**31)), Check("UINT_MAX", "uint", 2**32 - 1),
    Check("LONG_MAX", "long", 2**63 - 1), Check("LONG_MIN", "long", -(2**63)),
    Check("ULONG_MAX", "ulong", 2**64 - 1),
]  # fmt: skip
TRUE = """
  is_same_v<int, int32_t>
  is_same<float, float>::value
  is_floating_point_v<float> && is_floating_point_v<half> && is_floating_point_v<bfloat>
  is_integral_v<bool> && is_integral_v<uchar> && is_integral_v<long>
  is_signed_v<char> && is_signed_v<int> && is_signed_v<float>
  is_unsigned_v<uint> && is_unsigned_v<ulong>
  is_arithmetic_v<half> && is_arithmetic_v<short>
  is_scalar_v<float> && is_scalar_v<bfloat> && is_scalar_v<device int*>
  is_pointer_v<device float*> && is_enum_v<mem_flags> && is_void_v<void>
  is_array_v<int[3]> && is_const_v<const int> && is_class_v<array<int, 2>>
  is_reference_v<thread int&> && is_lvalue_reference_v<thread int&>
  is_convertible_v<int, float> && is_convertible_v<half, float>
  is_constructible_v<float4, float2, float2>
  is_trivially_copyable_v<float4>
  is_same_v<remove_const_t<const int>, int> && is_same_v<remove_cv_t<const volatile int>, int>
  is_same_v<remove_reference_t<thread int&>, int> && is_same_v<decay_t<const int>, int>
  is_same_v<add_const_t<int>, const int> && is_same_v<remove_pointer_t<int*>, int>
  is_same_v<make_signed_t<uint>, int> && is_same_v<make_unsigned_t<long>, ulong>
  is_same_v<make_unsigned_t<int4>, uint4>
  is_same_v<conditional_t<true, int, float>, int>
  is_same_v<conditional_t<false, int, float>, float>
  is_same_v<enable_if_t<true, half>, half> && is_same_v<common_type_t<int, float>, float>
  is_same_v<underlying_type_t<Small>, uchar>
  conjunction_v<true_type, true_type> && disjunction_v<false_type, true_type>
  negation_v<false_type> && integral_constant<int, 7>::value == 7
  rank_v<int[2][3]> == 2 && extent_v<int[5]> == 5
  is_same_v<decltype(half(1) * 2), half> && is_same_v<decltype(half(1) * 2.0f), float>
  is_same_v<decltype(exp(half2(1))), half2> && is_same_v<decltype(float2(1) < 2), bool2>
  is_same_v<vec<float, 3>, decltype(cross(float3(1), float3(2)))>
""".strip().splitlines()
FALSE = """
  is_same_v<int, uint>
  is_floating_point_v<int>
  is_integral_v<float> || is_integral_v<half>
  is_signed_v<uint> || is_unsigned_v<int>
  is_pointer_v<int> || is_const_v<int> || is_array_v<int>
  is_scalar_v<float4> || is_scalar_v<half2>
  is_convertible_v<int4, float4> || is_convertible_v<float, bfloat>
  is_constructible_v<float4, float3, float2>
  is_enum_v<int> || is_class_v<int> || is_void_v<int>
  conjunction_v<true_type, false_type> || disjunction_v<false_type, false_type>
""".strip().splitlines()
DECLARATIONS = "enum Small : uchar { one };\n"
TRAITS = [Check(text.strip(), "bool", 1) for text in TRUE]
TRAITS += [Check(text.strip(), "bool", 0) for text in FALSE]
CHECKS = [
    *(check for name in FLOATS for check in float_limits(name)),
    *(check for name in INTEGERS for check in integer_limits(name)),
    *CONSTANTS,
    *TRAITS,
]


@pytest.fixture(scope="module")
def values(compile_shader) -> list[np.ndarray]:
    return evaluate(compile_shader, CHECKS, DECLARATIONS)


@pytest.mark.parametrize("index", range(len(CHECKS)), ids=[c.text for c in CHECKS])
def test_constant(values, count, index: int) -> None:
    assert mismatches([CHECKS[index]], [values[index]]) == []
    count(size([CHECKS[index]]))

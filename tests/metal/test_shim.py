"""The types and functions of metal_stdlib, measured through kernels on the cpu backend."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"


def int_tensor(*size: int) -> torch.Tensor:
    return torch.zeros(*size, dtype=torch.int)


# ---- layouts, swizzles, conversions ----

SIZES = {
    "half": 2, "bfloat": 2, "long": 8, "bool2": 2, "bool3": 4, "char3": 4, "half2": 4, "half3": 8,
    "bfloat4": 8, "float2": 8, "float3": 16, "float4": 16, "long3": 32, "long4": 32,
    "packed_half3": 6, "packed_float3": 12, "packed_char3": 3, "packed_uint4": 16,
    "float2x2": 16, "float3x3": 48, "float4x3": 64, "half4x4": 32, "atomic_bool": 4,
}  # fmt: skip
PACKED_ALIGNMENT = {"packed_half3": 2, "packed_float3": 4, "packed_char3": 1, "packed_uint4": 4}
MATRIX_ALIGNMENT = {"float2x2": 8, "float3x3": 16, "float4x3": 16, "half4x4": 8}


def test_sizes_and_alignments(compile_shader) -> None:
    rows = "".join(f"out[{i}] = int2(sizeof({t}), alignof({t}));" for i, t in enumerate(SIZES))
    library = compile_shader(f"{HEADER}kernel void sizes(device int2* out) {{ {rows} }}")
    out = int_tensor(len(SIZES), 2)
    library.sizes(out, threads=1)
    alignments = SIZES | PACKED_ALIGNMENT | MATRIX_ALIGNMENT
    measured = {name: tuple(row) for name, row in zip(SIZES, out.tolist(), strict=True)}
    assert measured == {name: (SIZES[name], alignments[name]) for name in SIZES}


VECTORS = (
    HEADER
    + """
struct Out { device float4* at; uint n; void add(float4 v) { at[n++] = v; } };
template <typename T, int N> T last(vec<T, N> v) { return v[N - 1]; }
template <typename T> T twice(T v) { return v + v; }
union Bits { float4 f; uint4 u; };

kernel void vectors(device float4* out, constant packed_float3* in, device packed_float3* packed) {
  Out o{out, 0};
  float4 v(1, 2, 3, 4);
  o.add(v.wzyx);
  o.add(float4(v.xy, float2(v.zw).yx));
  o.add(float4(0.5f, v.yyy));
  v.xz = v.zx;
  o.add(v);
  v.yw += 10;
  v.rg *= float2(2, 3);
  o.add(v);
  const float4 w = v;
  v.zx = w.zx;
  o.add(v);
  v = 7;
  v.xyz = float3(in[1]);
  o.add(v);
  packed[0] = v.zyx;
  packed[0].y -= 1;
  packed[1] = packed[0] * 2;
  o.add(float4(min(v.xy, float2(5)), max(v.zw, 6.5f)));
  o.add(float4(last(v), dot(v.xyz, v.yzx), twice(v.x), length(float2(3, 4))));
  uint4 counter = 0;
  counter.zw = uint2(5, ~0u);
  counter >>= 1;
  o.add(float4(counter & uint4(3, 3, 3, 0x70000000)));
  o.add(select(v, -v, v < 6.0f));
  o.add(float4(bool4(v > 5.0f)));
  int3 n = int3(float3(-1.75f, 2.5f, 100));
  n = n % 7 + int3(ushort3(1, 2, 3));
  o.add(float4(float3(n), any(n == 4) + 2 * all(n == 4)));
  Bits bits;
  bits.f = float4(1);
  bits.u.xy = uint2(0x40000000, 0);
  o.add(bits.f);
  const auto mixed = v.x > 0 ? v.xy : v.zw;
  const auto pair = v.zw;
  o.add(float4(mixed.x, pair.y - 2, v.x < 0 ? 1 : 0.5f, v.x > 0 ? 2 : half(3)));
  float2x3 m(float3(1, 2, 3), float3(4, 5, 6));
  o.add(float4(m * float2(1, 10), (float3(1, 0, 0) * m).y));
  o.add(float4((transpose(m) * m)[1], determinant(float2x2(1, 2, 3, 4)), float3x3(2)[1][1]));
  v[3] = 9;
  v.x++;
  o.add(-v);
}
"""
)
VECTOR_ROWS = [
    (4, 3, 2, 1),
    (1, 2, 4, 3),
    (0.5, 2, 2, 2),
    (3, 2, 1, 4),
    (6, 36, 1, 14),
    (6, 36, 1, 14),
    (4, 5, 6, 7),
    (4, 5, 6.5, 7),
    (7, 4 * 5 + 5 * 6 + 6 * 4, 8, 5),
    (0, 0, 2, 0x70000000),
    (-4, -5, 6, 7),
    (0, 0, 1, 1),
    (0, 4, 5, 1),
    (2, 0, 1, 1),
    (4, 5, 0.5, 2),
    (41, 52, 63, 4),
    (32, 77, -2, 2),
    (-5, -5, -6, -9),
]


def test_vectors_and_swizzles(compile_shader) -> None:
    out = torch.zeros(len(VECTOR_ROWS), 4)
    packed = torch.zeros(2, 3)
    points = torch.tensor([[1.0, 2, 3], [4, 5, 6]])
    compile_shader(VECTORS).vectors(out, points, packed, threads=1)
    assert out.tolist() == [list(map(float, row)) for row in VECTOR_ROWS]
    assert packed.tolist() == [[6, 4, 4], [12, 8, 8]]


# ---- half and bfloat ----

SMALL = (
    HEADER
    + """
template <typename T>
[[kernel]] void widen(device float* out, constant T* in, uint i [[thread_position_in_grid]]) {
  out[i] = in[i];
}
template <typename T>
[[kernel]] void narrow(device T* out, constant float* in, uint i [[thread_position_in_grid]]) {
  out[i] = T(in[i]);
}
template <typename T>
[[kernel]] void arithmetic(
    device T* out, constant T* a, constant T* b, uint i [[thread_position_in_grid]],
    uint n [[threads_per_grid]]) {
  T x = a[i];
  out[i] = a[i] + b[i];
  out[n + i] = a[i] - b[i];
  out[2 * n + i] = a[i] * b[i];
  out[3 * n + i] = a[i] / b[i];
  out[4 * n + i] = -x * 3 + b[i];
  x += 0.1f;
  x *= b[i];
  out[5 * n + i] = x;
  out[6 * n + i] = T(2.5f * a[i] + 1);
  out[7 * n + i] = a[i] < b[i] ? a[i] : 0;
}
#define INSTANTIATE(T)                                                                  \\
  template [[host_name("widen_" #T)]] [[kernel]] void widen<T>(                         \\
      device float*, constant T*, uint);                                                \\
  template [[host_name("narrow_" #T)]] [[kernel]] void narrow<T>(                       \\
      device T*, constant float*, uint);                                                \\
  template [[host_name("arithmetic_" #T)]] [[kernel]] void arithmetic<T>(               \\
      device T*, constant T*, constant T*, uint, uint);
INSTANTIATE(half)
INSTANTIATE(bfloat)
"""
)
SMALL_TYPES = {"half": torch.half, "bfloat": torch.bfloat16}


@pytest.fixture(scope="module")
def small(compile_shader):
    return compile_shader(SMALL)


@pytest.fixture(params=SMALL_TYPES)
def small_type(request: pytest.FixtureRequest) -> str:
    return request.param


def every_value(dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal bits, any NaN standing for any other."""
    return torch.equal(torch.nan_to_num(a, nan=7), torch.nan_to_num(b, nan=7)) and torch.equal(
        torch.signbit(a) & ~a.isnan(), torch.signbit(b) & ~b.isnan()
    )


def test_every_small_value_widens_and_comes_back(small, small_type: str) -> None:
    values = every_value(SMALL_TYPES[small_type])
    wide, back = torch.zeros(values.numel()), torch.zeros_like(values)
    getattr(small, f"widen_{small_type}")(wide, values)
    assert same(wide, values.float())
    getattr(small, f"narrow_{small_type}")(back, wide)
    assert same(back, values)


def test_floats_round_to_nearest_even(small, small_type: str) -> None:
    dtype = SMALL_TYPES[small_type]
    values = every_value(dtype).float()
    ties = (values[:-1].double() + values[1:].double()) / 2
    nudged = [torch.nextafter(ties.float(), torch.tensor(end)) for end in (-math.inf, math.inf)]
    bits = torch.randint(-(2**31), 2**31, (100_000,), generator=torch.Generator().manual_seed(1))
    floats = torch.cat([ties.float(), *nudged, bits.int().view(torch.float)])
    out = torch.zeros(floats.numel(), dtype=dtype)
    getattr(small, f"narrow_{small_type}")(out, floats)
    assert same(out, floats.to(dtype))


def test_small_arithmetic_rounds_once_at_every_operation(small, small_type: str) -> None:
    dtype = SMALL_TYPES[small_type]
    generator = torch.Generator().manual_seed(2)
    a, b = (every_value(dtype)[torch.randperm(2**16, generator=generator)] for _ in range(2))
    out = torch.zeros(8, a.numel(), dtype=dtype)
    getattr(small, f"arithmetic_{small_type}")(out, a, b, threads=a.numel())
    wide, other = a.float(), b.float()

    def rounded(x: torch.Tensor) -> torch.Tensor:
        return x.to(dtype).float()

    expected = [
        wide + other,
        wide - other,
        wide * other,
        wide / other,
        rounded(-wide * 3) + other,
        rounded(wide + 0.1) * other,
        2.5 * wide + 1,
        torch.where(wide < other, wide, 0.0),
    ]
    for row, reference in zip(out, expected, strict=True):
        assert same(row, reference.to(dtype))


# ---- math: largest error in ULP against float64, over a range ----

Reference = Callable[[torch.Tensor], torch.Tensor]
UNARY: dict[str, tuple[Reference, float, float, float]] = {
    "acos": (torch.acos, -1, 1, 4),
    "acosh": (torch.acosh, 1, 1e4, 4),
    "asin": (torch.asin, -1, 1, 4),
    "asinh": (torch.asinh, -1e4, 1e4, 4),
    "atan": (torch.atan, -1e3, 1e3, 5),
    "atanh": (torch.atanh, -0.999, 0.999, 5),
    "ceil": (torch.ceil, -1e3, 1e3, 0.5),
    "cos": (torch.cos, -1e3, 1e3, 4),
    "cosh": (torch.cosh, -80, 80, 4),
    "cospi": (lambda x: torch.cos(math.pi * (x - 2 * torch.round(x / 2))), -0.45, 0.45, 4),
    "exp": (torch.exp, -80, 80, 4),
    "exp2": (torch.exp2, -120, 120, 4),
    "exp10": (lambda x: 10.0**x, -36, 36, 4),
    "fabs": (torch.abs, -1e3, 1e3, 0.5),
    "floor": (torch.floor, -1e3, 1e3, 0.5),
    "fract": (lambda x: x - torch.floor(x), -1e3, 1e3, 0.5),
    "log": (torch.log, 1e-30, 1e30, 4),
    "log2": (torch.log2, 1e-30, 1e30, 4),
    "log10": (torch.log10, 1e-30, 1e30, 4),
    "rint": (torch.round, -1e3, 1e3, 0.5),
    "rsqrt": (torch.rsqrt, 1e-30, 1e30, 0.5001),
    "sin": (torch.sin, -1e3, 1e3, 4),
    "sinh": (torch.sinh, -80, 80, 4),
    "sinpi": (lambda x: torch.sin(math.pi * (x - 2 * torch.round(x / 2))), -0.95, 0.95, 4),
    "sqrt": (torch.sqrt, 0, 1e30, 0.5),
    "tan": (torch.tan, -1e3, 1e3, 6),
    "tanh": (torch.tanh, -10, 10, 5),
    "tanpi": (lambda x: torch.tan(math.pi * x), -0.45, 0.45, 6),
    "trunc": (torch.trunc, -1e3, 1e3, 0.5),
}
BINARY: dict[str, tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], float]] = {
    "atan2": (torch.atan2, 6),
    "copysign": (torch.copysign, 0.5),
    "fdim": (lambda x, y: (x - y).clamp(min=0), 0.5),
    "fmax": (torch.fmax, 0.5),
    "fmin": (torch.fmin, 0.5),
    "fmod": (torch.fmod, 0.5),
    "pow": (lambda x, y: torch.pow(x.abs(), y / 8), 16),
}


def math_kernels() -> str:
    lines = [HEADER]
    position = "uint i [[thread_position_in_grid]]"
    for name in UNARY:
        lines += [
            f"kernel void {name}_f(device float* o, constant float* x, {position})",
            f"{{ o[i] = metal::{name}(x[i]); }}",
            f"kernel void {name}_h(device half4* o, constant half4* x, {position})",
            f"{{ o[i] = metal::precise::{name}(x[i]); }}",
        ]
    for name in BINARY:
        arguments = "fabs(x[i]), y[i] / 8" if name == "pow" else "x[i], y[i]"
        lines += [
            f"kernel void {name}_f(device float* o, constant float* x, constant float* y,",
            f"{position}) {{ o[i] = metal::{name}({arguments}); }}",
        ]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def functions(compile_shader):
    return compile_shader(math_kernels())


def ulp_error(out: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest distance from the exact values, in units of the last place of float."""
    magnitude = exact.abs().clamp(min=2.0**-126).float()
    ulp = torch.nextafter(magnitude, torch.tensor(math.inf)).double() - magnitude.double()
    return ((out.double() - exact).abs() / ulp).max().item()


@pytest.mark.parametrize("name", UNARY)
def test_unary_math(functions, name: str) -> None:
    reference, low, high, bound = UNARY[name]
    generator = torch.Generator().manual_seed(3)
    x = low + (high - low) * torch.rand(20_000, generator=generator)
    if low > 0 and high / low > 1e20:
        x = 10 ** (-30 + 60 * torch.rand(20_000, generator=generator))
    out = torch.zeros_like(x)
    getattr(functions, f"{name}_f")(out, x)
    assert ulp_error(out, reference(x.double())) <= bound

    halves = x.clamp(-1e3, 1e3).half()[: 4 * 1024]
    out_half = torch.zeros_like(halves)
    getattr(functions, f"{name}_h")(out_half, halves, threads=1024)
    exact = reference(halves.double())
    beyond = (out_half.double() - exact).abs() > 2.0**-10 * exact.abs() + 2.0**-24
    assert not (beyond & out_half.isfinite() & (exact.abs() < 65504)).any()


@pytest.mark.parametrize("name", BINARY)
def test_binary_math(functions, name: str) -> None:
    reference, bound = BINARY[name]
    x, y = 200 * torch.rand(2, 20_000, generator=torch.Generator().manual_seed(4)) - 100
    out = torch.zeros_like(x)
    getattr(functions, f"{name}_f")(out, x, y)
    assert ulp_error(out, reference(x.double(), y.double())) <= bound


SPECIAL = {
    "fmin(NAN, 1.0f)": 1, "fmax(1.0f, NAN)": 1, "min(NAN, NAN)": math.nan, "sign(NAN)": 0,
    "sign(-3.0f)": -1, "saturate(NAN)": 0, "saturate(2.0f)": 1, "step(1.0f, 1.0f)": 1,
    "step(2.0f, 1.0f)": 0, "mix(1.0f, 3.0f, 0.25f)": 1.5, "smoothstep(0.0f, 2.0f, 1.0f)": 0.5,
    "clamp(5, 0, 3)": 3, "clamp(-1.0f, 0.0f, 3.0f)": 0, "fma(2.0f, 3.0f, 4.0f)": 10,
    "median3(3.0f, 1.0f, 2.0f)": 2, "min3(3, 1, 2)": 1, "fmax3(3.0f, NAN, 2.0f)": 3,
    "powr(-1.0f, 2.0f)": math.nan, "pow(2, -1.0f)": 0.5, "round(2.5f)": 3, "rint(2.5f)": 2,
    "sinpi(1e6f)": 0, "cospi(0.5f)": 0, "sinpi(2.5f)": 1, "cospi(3.0f)": -1,
    "fract(-1e-9f)": 1 - 2.0**-24, "ldexp(0.75f, 4)": 12, "ilogb(10.0f)": 3,
    "isnan(half(NAN))": 1, "isinf(-INFINITY)": 1, "isnormal(half(0x1p-15f))": 0,
    "isfinite(HALF_MAX)": 1, "signbit(-0.0f)": 1, "isunordered(1.0f, NAN)": 1,
    "frexp(10.0f, e) + e": 4.625, "modf(-2.25f, w) + w * 10": -20.25,
    "sincos(0.0f, w) + w": 1, "nextafter(half(1), half(2)) - 1": 2.0**-10,
    "numeric_limits<half>::denorm_min()": 2.0**-24, "numeric_limits<bfloat>::epsilon()": 2.0**-7,
    "float(numeric_limits<long>::max() == LONG_MAX)": 1, "numeric_limits<half2>::max().y": 65504,
    "abs(dot(normalize(float3(1, 2, 2)), float3(0, 0, 3)) - 2) < 1e-6f": 1,
    "cross(float3(1, 0, 0), float3(0, 1, 0)).z": 1, "distance(float2(0, 3), float2(4, 0))": 5,
    "reflect(float2(1, -1), float2(0, 1)).y": 1, "as_type<half>(ushort(0x3c01)) - 1": 2.0**-10,
    "as_type<int>(1.0f)": 0x3F800000, "as_type<float2>(as_type<long>(float2(1, 5))).y": 5,
    "pack_float_to_unorm4x8(float4(1, 0, 0, 0))": 255,
    "unpack_snorm2x16_to_float(0x7fff8001).x": -1,
    "is_floating_point_v<half2> && !is_scalar_v<half2> && is_scalar_v<bfloat>": 1,
    "is_same_v<decltype(half(1) * 2), half> && is_same_v<decltype(half(1) * 2.0f), float>": 1,
    "is_same_v<decltype(exp(half2(1))), half2> && is_same_v<decltype(float2(1) < 2), bool2>": 1,
}  # fmt: skip


def test_special_values_and_common_functions(compile_shader) -> None:
    rows = "".join(f"out[{i}] = {text};\n" for i, text in enumerate(SPECIAL))
    source = f"{HEADER}kernel void special(device float* out) {{ int e; float w;\n{rows} }}"
    out = torch.zeros(len(SPECIAL))
    compile_shader(source).special(out, threads=1)
    wrong = {
        text: (value, expected)
        for (text, expected), value in zip(SPECIAL.items(), out.tolist(), strict=True)
        if value != expected and not (math.isnan(value) and math.isnan(expected))
    }
    assert wrong == {}


# ---- integers, against Python's unbounded ones ----

INTEGER_TYPES = {
    "char": (torch.int8, 8), "uchar": (torch.uint8, 8), "short": (torch.int16, 16),
    "ushort": (torch.uint16, 16), "int": (torch.int32, 32), "uint": (torch.uint32, 32),
    "long": (torch.int64, 64), "ulong": (torch.uint64, 64),
}  # fmt: skip
INTEGER_FUNCTIONS = {
    "abs(x)": lambda x, y, z, t: abs(x),
    "min(x, y)": lambda x, y, z, t: min(x, y),
    "max3(x, y, z)": lambda x, y, z, t: max(x, y, z),
    "median3(x, y, z)": lambda x, y, z, t: sorted((x, y, z))[1],
    "absdiff(x, y)": lambda x, y, z, t: abs(x - y),
    "addsat(x, y)": lambda x, y, z, t: t.clamped(x + y),
    "subsat(x, y)": lambda x, y, z, t: t.clamped(x - y),
    "hadd(x, y)": lambda x, y, z, t: (x + y) >> 1,
    "rhadd(x, y)": lambda x, y, z, t: (x + y + 1) >> 1,
    "mulhi(x, y)": lambda x, y, z, t: (x * y) >> t.width,
    "madhi(x, y, z)": lambda x, y, z, t: ((x * y) >> t.width) + z,
    "madsat(x, y, z)": lambda x, y, z, t: t.clamped(x * y + z),
    "rotate(x, T(z & 15))": lambda x, y, z, t: t.rotated(x, z & 15),
    "popcount(x)": lambda x, y, z, t: bin(t.bits(x)).count("1"),
    "clz(x)": lambda x, y, z, t: t.width - t.bits(x).bit_length(),
    "ctz(y)": lambda x, y, z, t: (y & -y).bit_length() - 1 if y else t.width,
    "reverse_bits(x)": lambda x, y, z, t: int(f"{t.bits(x):0{t.width}b}"[::-1], 2),
    "extract_bits(x, 2, 5)": lambda x, y, z, t: t.field(x, 2, 5),
    "insert_bits(x, y, 1, 6)": lambda x, y, z, t: (x & ~0x7E) | (y << 1 & 0x7E),
}


class IntegerType:
    """The arithmetic of one of MSL's integer types."""

    def __init__(self, name: str) -> None:
        self.dtype, self.width = INTEGER_TYPES[name]
        self.signed = not name.startswith("u")
        self.low = -(1 << (self.width - 1)) if self.signed else 0
        self.high = self.low + (1 << self.width) - 1

    def bits(self, x: int) -> int:
        return x & ((1 << self.width) - 1)

    def wrapped(self, x: int) -> int:
        return (x - self.low) % (1 << self.width) + self.low

    def clamped(self, x: int) -> int:
        return max(self.low, min(self.high, x))

    def rotated(self, x: int, count: int) -> int:
        count %= self.width
        return self.bits(x) << count | self.bits(x) >> (self.width - count)

    def field(self, x: int, offset: int, count: int) -> int:
        value = self.bits(x) >> offset & ((1 << count) - 1)
        return value - (1 << count) if self.signed and value >> (count - 1) else value


@pytest.fixture(scope="module")
def integers(compile_shader):
    rows = "".join(f"out[{k} * n + i] = T({text});\n" for k, text in enumerate(INTEGER_FUNCTIONS))
    kernels = "".join(
        f"kernel void on_{name}(device {name}* out, constant {name}* in, constant uint& n,"
        f" uint i [[thread_position_in_grid]]) {{ functions(out, in, n, i); }}\n"
        for name in INTEGER_TYPES
    )
    return compile_shader(
        f"{HEADER}template <typename T> void functions(device T* out, constant T* in, uint n,"
        f" uint i) {{ const T x = in[i], y = in[n + i], z = in[2 * n + i];\n{rows}}}\n{kernels}"
    )


@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_integer_functions(integers, name: str) -> None:
    kind = IntegerType(name)
    edges = [kind.low, kind.low + 1, 0, 1, 2, 77, kind.high - 1, kind.high]
    triples = [(x, y, z) for x in edges for y in edges for z in edges]
    in_ = torch.tensor(
        [kind.wrapped(x) for column in zip(*triples, strict=True) for x in column],
        dtype=kind.dtype,
    )
    out = torch.zeros(len(INTEGER_FUNCTIONS), len(triples), dtype=kind.dtype)
    getattr(integers, f"on_{name}")(out, in_, len(triples), threads=len(triples))
    for (text, reference), row in zip(INTEGER_FUNCTIONS.items(), out.tolist(), strict=True):
        expected = [kind.wrapped(reference(*triple, kind)) for triple in triples]
        assert row == expected, text


# ---- simdgroups ----

MOVES: dict[str, Callable[[int], int | None]] = {
    "simd_shuffle(x, ushort(lane * 7 % 32))": lambda i: i * 7 % 32,
    "simd_shuffle_up(x, 3)": lambda i: i - 3 if i >= 3 else None,
    "simd_shuffle_down(x, 5)": lambda i: i + 5 if i < 27 else None,
    "simd_shuffle_xor(x, 9)": lambda i: i ^ 9,
    "simd_shuffle_rotate_up(x, 4)": lambda i: (i - 4) % 32,
    "simd_shuffle_rotate_down(x, 4)": lambda i: (i + 4) % 32,
    "simd_broadcast(x, 6)": lambda i: 6,
    "quad_shuffle_xor(x, 1)": lambda i: i ^ 1,
    "quad_broadcast(x, 2)": lambda i: i & ~3 | 2,
    "quad_shuffle_down(x, 1)": lambda i: i + 1 if i % 4 < 3 else None,
    "quad_shuffle_rotate_up(x, 1)": lambda i: i & ~3 | (i - 1) % 4,
}
# Lane, and whether it is the filling value's.
FILLS: dict[str, Callable[[int], tuple[int, bool]]] = {
    "simd_shuffle_and_fill_down(x, -x, 5)": lambda i: ((i + 5) % 32, i + 5 >= 32),
    "simd_shuffle_and_fill_up(x, -x, 5)": lambda i: ((i - 5) % 32, i < 5),
    "simd_shuffle_and_fill_down(x, -x, 3, 8)": lambda i: (i // 8 * 8 + (i + 3) % 8, i % 8 >= 5),
    "simd_shuffle_and_fill_up(x, -x, 3, 8)": lambda i: (i // 8 * 8 + (i - 3) % 8, i % 8 < 3),
}
Lanes = list[int]
REDUCTIONS: dict[str, Callable[[Lanes, int], float]] = {
    "simd_sum(x)": lambda lanes, i: sum(lanes),
    "simd_product(x / 8)": lambda lanes, i: math.prod(x / 8 for x in lanes),
    "simd_min(x)": lambda lanes, i: min(lanes),
    "simd_max(x)": lambda lanes, i: max(lanes),
    "simd_and(n)": lambda lanes, i: all_of(lanes, lambda a, b: a & b),
    "simd_or(n)": lambda lanes, i: all_of(lanes, lambda a, b: a | b),
    "simd_xor(n)": lambda lanes, i: all_of(lanes, lambda a, b: a ^ b),
    "simd_sum(half2(1, x)).y / 2": lambda lanes, i: sum(lanes) / 2,
    "simd_prefix_inclusive_sum(x)": lambda lanes, i: sum(x for x in lanes if x <= 8 + i),
    "simd_prefix_exclusive_sum(n)": lambda lanes, i: sum(x for x in lanes if x < 8 + i),
    "simd_prefix_inclusive_product(x / 8)": lambda lanes, i: math.prod(
        x / 8 for x in lanes if x <= 8 + i
    ),
    "simd_prefix_exclusive_product(x / 8)": lambda lanes, i: math.prod(
        x / 8 for x in lanes if x < 8 + i
    ),
    "simd_broadcast_first(x)": lambda lanes, i: lanes[0],
    "simd_is_first()": lambda lanes, i: lanes[0] == 8 + i,
    "popcount(ulong(simd_active_threads_mask()))": lambda lanes, i: len(lanes),
    "ulong(simd_ballot(n % 3 == 0)) >> lane & 1": lambda lanes, i: (8 + i) % 3 == 0,
    "popcount(ulong(simd_ballot(n % 3 == 0)))": lambda lanes, i: sum(x % 3 == 0 for x in lanes),
    "simd_all(n >= 9)": lambda lanes, i: min(lanes) >= 9,
    "simd_any(n == 13)": lambda lanes, i: 13 in lanes,
    "quad_sum(x)": lambda lanes, i: sum(x for x in lanes if (x - 8) // 4 == i // 4),
    "quad_max(n)": lambda lanes, i: max(x for x in lanes if (x - 8) // 4 == i // 4),
    "quad_prefix_exclusive_sum(x)": lambda lanes, i: sum(
        x for x in lanes if (x - 8) // 4 == i // 4 and x < 8 + i
    ),
    "ulong(quad_ballot(n % 2 == 0))": lambda lanes, i: sum(
        1 << (x - 8) % 4 for x in lanes if (x - 8) // 4 == i // 4 and x % 2 == 0
    ),
    "quad_any(n == 13)": lambda lanes, i: 13 in lanes and i // 4 == 1,
}


def all_of(lanes: Lanes, op: Callable[[int, int], int]) -> int:
    result = lanes[0]
    for lane in lanes[1:]:
        result = op(result, lane)
    return result


@pytest.fixture(scope="module")
def simdgroups(compile_shader):
    texts = [*MOVES, *FILLS, *REDUCTIONS]
    rows = "".join(f"out[{k} * 32 + lane] = {text};\n" for k, text in enumerate(texts))
    return compile_shader(
        f"""{HEADER}
        kernel void lanes(device float* out, constant uint& mask,
                          uint lane [[thread_index_in_simdgroup]]) {{
          const float x = lane + 8;
          const int n = lane + 8;
          if (!(mask >> lane & 1)) return;
          {rows}
        }}"""
    )


@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0x0F0F3F71, 0xFFFF0000, 0x00000020])
def test_lanes_of_a_simdgroup(simdgroups, mask: int) -> None:
    texts = [*MOVES, *FILLS, *REDUCTIONS]
    out = torch.full((len(texts), 32), math.inf)
    simdgroups.lanes(out, mask, threads=32, group_size=32, arg_casts={1: "int32"})
    rows = dict(zip(texts, out.tolist(), strict=True))
    active = [lane for lane in range(32) if mask >> lane & 1]
    for lane in active:
        for text, source in MOVES.items():
            at = source(lane)
            check_lane(text, rows[text][lane], at, 1, active)
        for text, fill in FILLS.items():
            at, filled = fill(lane)
            check_lane(text, rows[text][lane], at, -1 if filled else 1, active)
        for text, reduction in REDUCTIONS.items():
            expected = float(reduction([8 + x for x in active], lane))
            assert rows[text][lane] == pytest.approx(expected, rel=1e-6), (text, lane)
    assert all(
        row[lane] == math.inf for row in rows.values() for lane in set(range(32)) - {*active}
    )


def check_lane(text: str, value: float, at: int | None, sign: int, active: list[int]) -> None:
    """A value from an active lane, NaN (the poison) from any other."""
    if at is None or at not in active:
        assert math.isnan(value), (text, at)
    else:
        assert value == sign * (8 + at), (text, at)


def test_float_sums_are_a_butterfly(compile_shader) -> None:
    library = compile_shader(
        HEADER
        + """kernel void total(device float* x, uint i [[thread_position_in_grid]]) {
          x[i] = simd_sum(x[i]);
        }"""
    )
    x = 1e3 * torch.randn(32, generator=torch.Generator().manual_seed(5))
    tree = x.clone()
    while tree.numel() > 1:
        tree = tree[: tree.numel() // 2] + tree[tree.numel() // 2 :]
    library.total(x)
    assert x.tolist() == [tree.item()] * 32


# ---- atomics ----

ATOMICS = (
    HEADER
    + """
#include <c10/metal/atomic.h>
kernel void count(device atomic_int* n, device atomic<float>* f, device atomic_uint* bits,
                  device atomic_ulong* longest, device atomic_bool* flag,
                  uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(n, 2, memory_order_relaxed);
  atomic_fetch_sub_explicit(n + 1, 1, memory_order_relaxed);
  atomic_fetch_max_explicit(n + 2, int(i), memory_order_relaxed);
  atomic_fetch_min_explicit(n + 3, -int(i), memory_order_relaxed);
  atomic_fetch_add_explicit(f, 0.5f, memory_order_relaxed);
  atomic_fetch_or_explicit(bits, 1u << (i % 32), memory_order_relaxed);
  atomic_fetch_and_explicit(bits + 1, ~(1u << (i % 8)), memory_order_relaxed);
  atomic_fetch_xor_explicit(bits + 2, i, memory_order_relaxed);
  atomic_max_explicit(longest, ulong(i) << 33, memory_order_relaxed);
  if (i == 5) atomic_store_explicit(flag, true, memory_order_relaxed);
  uint seen = atomic_load_explicit(bits + 3, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(
      bits + 3, &seen, seen * 3 + 1, memory_order_relaxed, memory_order_relaxed)) {}
}
kernel void scatter(device atomic<uint>* h, device atomic<uint>* b, device atomic<uint>* l,
                    device atomic<float>* complex, uint i [[thread_position_in_grid]]) {
  using namespace c10::metal;
  AtomicType<half>::atomic_add(h, i % 3, half(1));
  AtomicType<bfloat>::atomic_add(b, i % 3, bfloat(0.5f));
  AtomicType<long>::atomic_add(l, i % 2, long(i) << 30);
  AtomicType<float2>::atomic_add(complex, 1, float2(1, -1));
}
"""
)


def test_atomics_across_threadgroups(compile_shader) -> None:
    library = compile_shader(ATOMICS)
    n, f = torch.tensor([0, 0, -1, 1], dtype=torch.int), torch.zeros(1)
    bits = torch.tensor([0, 0xFFFF, 0, 0], dtype=torch.int)
    longest, flag = torch.zeros(1, dtype=torch.long), int_tensor(1)
    library.count(n, f, bits, longest, flag, threads=4096, group_size=128)
    tripled = 0
    for _ in range(4096):
        tripled = (tripled * 3 + 1) % 2**32
    assert n.tolist() == [8192, -4096, 4095, -4095]
    assert f.item() == 2048 and flag.item() == 1 and longest.item() == 4095 << 33
    assert [x % 2**32 for x in bits.tolist()] == [2**32 - 1, 0xFF00, 0, tripled]

    halves, bfloats = torch.zeros(4, dtype=torch.half), torch.zeros(4, dtype=torch.bfloat16)
    longs, complex_ = torch.zeros(2, dtype=torch.long), torch.zeros(4)
    library.scatter(halves, bfloats, longs, complex_, threads=300, group_size=32)
    assert halves.tolist() == [100, 100, 100, 0] and bfloats.tolist() == [50, 50, 50, 0]
    assert longs.tolist() == [sum(range(0, 300, 2)) << 30, sum(range(1, 300, 2)) << 30]
    assert complex_.tolist() == [0, 0, 300, -300]


# ---- simdgroup matrices ----


@pytest.mark.parametrize("name", ["float", "half", "bfloat"])
def test_simdgroup_matrices(compile_shader, name: str) -> None:
    library = compile_shader(
        f"""{HEADER}
        kernel void multiply(device float* d, constant {name}* a, constant {name}* b,
                             device {name}* t, uint lane [[thread_index_in_simdgroup]]) {{
          simdgroup_matrix<{name}, 8, 8> x, y;
          simdgroup_load(x, a, 16, ulong2(8, 2));
          simdgroup_load(y, b, 8, 0, true);
          simdgroup_matrix<float, 8, 8> z = make_filled_simdgroup_matrix<float, 8, 8>(0.5f);
          simdgroup_multiply_accumulate(z, x, y, z);
          z.thread_elements()[0] += 1;
          simdgroup_store(z, d, 8);
          simdgroup_store(x, t, 8, ulong2(0, 0), true);
        }}"""
    )
    dtype = {"float": torch.float} | SMALL_TYPES
    generator = torch.Generator().manual_seed(6)
    a = torch.randint(-4, 5, (10, 16), generator=generator).to(dtype[name])
    b = torch.randint(-4, 5, (8, 8), generator=generator).to(dtype[name])
    d, t = torch.zeros(8, 8), torch.zeros(8, 8, dtype=dtype[name])
    library.multiply(d, a, b, t, threads=32, group_size=32)
    x = a[2:, 8:]
    evens = torch.tensor([1.0, 0.0]).repeat(4)
    assert torch.equal(d, x.float() @ b.float().T + 0.5 + evens)
    assert torch.equal(t, x.T)

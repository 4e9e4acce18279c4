"""Tables 6.9 and 6.10: simdgroup matrices made, loaded, stored and multiplied."""

from __future__ import annotations

import numpy as np
import pytest
from msl_evaluation import HEADER, decoded, results, tensor
from msl_formats import BFLOAT, FLOAT, HALF

pytestmark = pytest.mark.conformance("6.7 SIMD-group matrices")

FORMATS = {"float": FLOAT, "half": HALF, "bfloat": BFLOAT}
ROWS, STRIDE = 24, 24

# Arguments behind the address, and the 8x8 part of a ROWS x STRIDE array that they name.
PLACES = {
    "": lambda a: a.reshape(-1)[:64].reshape(8, 8),
    ", 24": lambda a: a[:8, :8],
    ", 24, ulong2(0)": lambda a: a[:8, :8],
    ", 24, ulong2(5, 3)": lambda a: a[3:11, 5:13],
    ", 24, ulong2(16, 16)": lambda a: a[16:, 16:],
    ", 24, ulong2(5, 3), false": lambda a: a[3:11, 5:13],
    ", 24, ulong2(0), true": lambda a: a[:8, :8].T,
    ", 24, ulong2(5, 3), true": lambda a: a[3:11, 5:13].T,
    ", 8, 0, true": lambda a: a.reshape(-1)[:64].reshape(8, 8).T,
    ", 12, ulong2(2, 1)": lambda a: a.reshape(-1, 12)[1:9, 2:10],
}
PRODUCTS = {
    "simdgroup_multiply(d, a, b);": lambda a, b, c: a @ b,
    "d = a * b;": lambda a, b, c: a @ b,
    "simdgroup_multiply_accumulate(d, a, b, c);": lambda a, b, c: a @ b + c,
    "d = c; simdgroup_multiply_accumulate(d, a, b, d);": lambda a, b, c: a @ b + c,
    "d = simdgroup_matrix<T, 8, 8>(T(3));": lambda a, b, c: 3 * np.eye(8),
    "d = make_filled_simdgroup_matrix<T, 8, 8>(T(-2));": lambda a, b, c: np.full((8, 8), -2),
    "d = a;": lambda a, b, c: a,
    "d = a; d.thread_elements()[0] = 0; d.thread_elements()[1] = 0;": lambda a, b, c: 0 * a,
}


@pytest.fixture(scope="module")
def kernels(compile_shader):
    matrix = "simdgroup_matrix<T, 8, 8>"
    move = (
        f"  for (uint i = lane; i < {ROWS * STRIDE}; i += 32) scratch[i] = in[i];\n"
        "  simdgroup_barrier(mem_flags::mem_threadgroup);\n"
        f"  {matrix} m;\n"
    )
    loads = "".join(
        f"  simdgroup_load(m, in{arguments}); simdgroup_store(m, out + {128 * i});\n"
        f"  simdgroup_load(m, scratch{arguments}); simdgroup_store(m, out + {128 * i + 64});\n"
        for i, arguments in enumerate(PLACES)
    )
    stores = "".join(
        f"  simdgroup_store(m, out + {ROWS * STRIDE * i}{arguments});\n"
        for i, arguments in enumerate(PLACES)
    )
    products = "".join(
        f"  {text} simdgroup_store(d, out + {64 * i});\n" for i, text in enumerate(PRODUCTS)
    )
    template = (
        f"{HEADER}template <typename T> kernel void load(device T* out, device const T* in,\n"
        f"    uint lane [[thread_index_in_simdgroup]]) {{\n"
        f"  threadgroup T scratch[{ROWS * STRIDE}];\n{move}{loads}}}\n"
        f"template <typename T> kernel void store(device T* out, device const T* in) {{\n"
        f"  {matrix} m; simdgroup_load(m, in);\n{stores}}}\n"
        f"template <typename T> kernel void multiply(device T* out, device const T* in) {{\n"
        f"  {matrix} a, b, c, d; simdgroup_load(a, in); simdgroup_load(b, in + 64);\n"
        f"  simdgroup_load(c, in + 128);\n{products}}}\n"
    )
    instances = "".join(
        f'template [[host_name("{name}_{type}")]] [[kernel]] void {name}<{type}>(\n'
        f"    device {type}*, device const {type}*{', uint' if name == 'load' else ''});\n"
        for name in ("load", "store", "multiply")
        for type in FORMATS
    )
    return compile_shader(template + instances)


def integers(*shape: int) -> np.ndarray:
    """Values whose products and sums every format holds."""
    return np.random.default_rng(7).integers(-3, 4, shape).astype(np.float64)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"load({place.lstrip(', ')})")
@pytest.mark.parametrize("type", FORMATS)
def test_load(kernels, count, type: str, place: str) -> None:
    format, array = FORMATS[type], integers(ROWS, STRIDE)
    out = results(128 * len(PLACES), format.size)
    getattr(kernels, f"load_{type}")(out, tensor(array, format), threads=32, group_size=32)
    device, threadgroup = decoded(out, format).reshape(-1, 2, 8, 8)[list(PLACES).index(place)]
    assert (device == PLACES[place](array)).all() and (threadgroup == device).all()
    count(128)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"store({place.lstrip(', ')})")
@pytest.mark.parametrize("type", FORMATS)
def test_store(kernels, count, type: str, place: str) -> None:
    format, matrix = FORMATS[type], integers(8, 8) + 10
    out = tensor(np.zeros(ROWS * STRIDE * len(PLACES)), format)
    getattr(kernels, f"store_{type}")(out, tensor(matrix, format), threads=32, group_size=32)
    array = decoded(out, format).reshape(-1, ROWS, STRIDE)[list(PLACES).index(place)]
    assert (PLACES[place](array) == matrix).all()
    assert np.count_nonzero(array) == 64
    count(array.size)


@pytest.mark.parametrize("text", PRODUCTS)
@pytest.mark.parametrize("type", FORMATS)
def test_multiply(kernels, count, type: str, text: str) -> None:
    format, factors = FORMATS[type], integers(3, 8, 8)
    out = results(64 * len(PRODUCTS), format.size)
    getattr(kernels, f"multiply_{type}")(out, tensor(factors, format), threads=32, group_size=32)
    product = decoded(out, format).reshape(-1, 8, 8)[list(PRODUCTS).index(text)]
    assert (product == PRODUCTS[text](*factors)).all()
    count(64)


def test_each_simdgroup_has_its_own(compile_shader, count) -> None:
    library = compile_shader(
        f"{HEADER}kernel void f(device float* x, uint g [[simdgroup_index_in_threadgroup]]) {{\n"
        "  simdgroup_float8x8 a, b(float(g + 2)), c;\n"
        "  simdgroup_load(a, x + 64 * g); c = a * b; simdgroup_store(c, x + 64 * g); }"
    )
    array = integers(4, 8, 8)
    x = tensor(array, FLOAT)
    library.f(x, threads=128, group_size=128)
    factors = np.arange(2, 6).reshape(4, 1, 1)
    assert (decoded(x, FLOAT).reshape(4, 8, 8) == array * factors).all()
    count(256)

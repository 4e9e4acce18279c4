"""The torch wheel's c10/metal headers, unmodified: each compiles, and computes what torch does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

HEADERS = sorted(
    header.name for header in (Path(torch.__file__).parent / "include/c10/metal").glob("*.h")
)


# error.h relies on its includer for the standard library, as all Metal sources have it.
@pytest.mark.parametrize("header", HEADERS)
def test_each_header_compiles_on_its_own(backend, compile_shader, header):
    # igamma.h calls a function that it only declares; NVRTC wants its definition.
    with_definitions = backend == "cuda" and header == "igamma.h"
    lib = compile_shader(
        f"#include <metal_stdlib>\n#include <c10/metal/{header}>\n"
        + "#include <c10/metal/expm1f.h>\n" * with_definitions
        + "kernel void one(device int* out) { out[0] = 1; }"
    )
    out = torch.zeros(1, dtype=torch.int)
    lib.one(out)
    assert out.item() == 1


@pytest.mark.parametrize("version", [310, 400])
def test_all_headers_together_in_other_versions_of_metal(compile_shader, version):
    includes = "".join(f"#include <c10/metal/{header}>\n" for header in HEADERS)
    lib = compile_shader(
        f"#include <metal_stdlib>\n{includes}"
        "kernel void version(device int* out) { out[0] = __METAL_VERSION__; }",
        metal_version=version,
    )
    out = torch.zeros(1, dtype=torch.int)
    lib.version(out)
    assert out.item() == version


UNARY = {
    "erf": torch.erf,
    "erfc": torch.erfc,
    "i0": torch.special.i0,
    "i0e": torch.special.i0e,
    "i1": torch.special.i1,
    "i1e": torch.special.i1e,
    "log_gamma": torch.lgamma,
    "digamma": torch.digamma,
    "trigamma": lambda x: torch.polygamma(1, x),
    "sinc": torch.sinc,
    "spherical_bessel_j0": torch.special.spherical_bessel_j0,
    "entr": torch.special.entr,
    "bessel_j0_forward": torch.special.bessel_j0,
    "bessel_y0_forward": torch.special.bessel_y0,
    "bessel_j1_forward": torch.special.bessel_j1,
    "modified_bessel_k0_forward": torch.special.modified_bessel_k0,
    "modified_bessel_i1_forward": torch.special.modified_bessel_i1,
    "erfcx": torch.special.erfcx,
    "expm1f": torch.expm1,
    "log1p": torch.log1p,
}


@pytest.fixture(scope="module")
def elementwise(compile_shader):
    functors = "".join(
        f"struct {name}_functor {{ template <typename T> T operator()(const T x) "
        f"{{ return static_cast<T>(c10::metal::{name}(x)); }} }};\n"
        f"REGISTER_UNARY_OP({name}, float, float);\n"
        for name in UNARY
    )
    return compile_shader(
        "#include <metal_stdlib>\n#include <c10/metal/indexing.h>\n"
        "#include <c10/metal/special_math.h>\n#include <c10/metal/expm1f.h>\n"
        "struct add_functor { template <typename T> T operator()(const T a, const T b) "
        "{ return static_cast<T>(a + b); } };\n"
        "REGISTER_BINARY_OP(add, float, float);\nREGISTER_BINARY_OP(add, half, half);\n"
        "REGISTER_BINARY_OP(add, long, long);\n" + functors
    )


@pytest.mark.parametrize("name", UNARY)
def test_special_functions(elementwise, name):
    x = torch.linspace(0.01, 9.0, 500)
    out = torch.full_like(x, torch.nan)
    getattr(elementwise, f"{name}_dense_float_float")(out, x, x.numel(), threads=125)
    expected = UNARY[name](x.double())
    # The headers are written for float32: a few roundings of values near 1.
    torch.testing.assert_close(out.double(), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("dtype, name", [(torch.float32, "float"), (torch.half, "half")])
def test_strided_binary_kernels(elementwise, dtype, name):
    a = torch.randn(6, 10, 4).to(dtype)[:, ::2].transpose(0, 2)
    b = torch.randn(4, 5, 6).to(dtype)
    out = torch.zeros(5, 4, 6, dtype=dtype).transpose(0, 1)
    order = list(reversed(range(3)))  # the kernels number dimensions from the innermost
    item = a.element_size()

    def strides(tensor):
        return tuple(tensor.stride(d) * item for d in order)

    kernel = getattr(elementwise, f"add_strided_{name}_{name}")
    sizes = tuple(a.shape[d] for d in order)
    ndim = (3, 0, 0, 0)  # followed by the dtypes, for kernels that convert
    kernel(
        *(out, a, b, sizes, strides(out), strides(a), strides(b), ndim),
        threads=out.numel(),
        arg_casts={7: "int32"},
    )
    torch.testing.assert_close(out, a + b)


REDUCTIONS = """
#include <c10/metal/reduction_utils.h>
using namespace metal;
template <typename T>
kernel void reductions(device T* out, constant T* x, uint i [[thread_index_in_threadgroup]],
                       uint n [[threads_per_threadgroup]]) {
  threadgroup c10::metal::opmath_t<T> sums[32];
  threadgroup c10::metal::opmath_t<T> products[32];
  threadgroup T maxima[32], minima[32], arg_values[32];
  threadgroup int arg_indices[32];
  T sum = T(c10::metal::threadgroup_sum(sums, x[i], i, n));
  T product = T(c10::metal::threadgroup_prod(products, x[i], i, n));
  T maximum = c10::metal::threadgroup_max(maxima, x[i], i, n);
  T minimum = c10::metal::threadgroup_min(minima, x[i], i, n);
  int where = c10::metal::threadgroup_argmax(arg_values, arg_indices, x[i], int(i), i, n);
  if (i == 0) {
    out[0] = sum; out[1] = product; out[2] = maximum; out[3] = minimum; out[4] = T(where);
  }
}
template [[host_name("float")]] kernel void reductions<float>(
    device float*, constant float*, uint, uint);
template [[host_name("half")]] kernel void reductions<half>(
    device half*, constant half*, uint, uint);
template [[host_name("bfloat")]] kernel void reductions<bfloat>(
    device bfloat*, constant bfloat*, uint, uint);
template [[host_name("int")]] kernel void reductions<int>(device int*, constant int*, uint, uint);
template [[host_name("long")]] kernel void reductions<long>(
    device long*, constant long*, uint, uint);
"""
DTYPES = {
    "float": torch.float32,
    "half": torch.half,
    "bfloat": torch.bfloat16,
    "int": torch.int,
    "long": torch.long,
}


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("n", [32, 64, 256, 1024])
def test_threadgroup_reductions(compile_shader, name, n):
    if name == "long" and n in (64, 256):
        n = 1024  # sizes whose last step has inactive lanes are the next test's
    generator = torch.Generator().manual_seed(n)
    x = torch.randint(1, 3, (n,), generator=generator)
    x[8:] = 1
    x[n // 2] = 5
    x = x.to(DTYPES[name])
    out = torch.zeros(5, dtype=x.dtype)
    getattr(compile_shader(REDUCTIONS), name)(out, x, threads=n, group_size=n)
    assert out.tolist() == [x.sum(), x.prod(), 5, x.min(), n // 2]


def test_lanes_that_are_not_active_give_poison(compile_shader):
    """64-bit sums shuffle from lanes that need not be active, as reduction_utils.h itself notes.

    On Apple's GPUs such a lane happens to give 0, and the sum comes out right by luck.
    """
    x = torch.ones(64, dtype=torch.long)
    out = torch.zeros(5, dtype=torch.long)
    compile_shader(REDUCTIONS).long(out, x, threads=64, group_size=64)
    assert out[0] != 64


@pytest.mark.parametrize("name", ["float", "half", "bfloat"])
def test_threadgroup_reductions_propagate_nan(compile_shader, name):
    x = torch.ones(128, dtype=DTYPES[name])
    x[77] = torch.nan
    out = torch.zeros(5, dtype=x.dtype)
    getattr(compile_shader(REDUCTIONS), name)(out, x, threads=128, group_size=128)
    assert out[:4].isnan().all() and out[4] == 77


@pytest.mark.parametrize(
    "name, dtype, atomic",
    [
        ("float", torch.float32, "float"),
        ("int", torch.int, "int"),
        ("half", torch.half, "half"),
        ("bfloat", torch.bfloat16, "bfloat"),
        ("short", torch.short, "short"),
        ("uchar", torch.uint8, "uchar"),
        ("long", torch.long, "long"),
    ],
)
def test_atomic_add_from_many_threadgroups(compile_shader, name, dtype, atomic):
    lib = compile_shader(f"""
        #include <c10/metal/atomic.h>
        #include <metal_stdlib>
        using namespace metal;
        kernel void add(device c10::metal::AtomicType_t<{name}>* out, constant {name}* x,
                        uint i [[thread_position_in_grid]]) {{
          c10::metal::AtomicType<{name}>::atomic_add(out, i % 3, x[i]);
        }}
    """)
    x = torch.ones(240, dtype=dtype)
    out = torch.zeros(4, dtype=dtype)
    lib.add(out, x, threads=240, group_size=32)
    assert out.tolist() == [80, 80, 80, 0]

"""PyTorch's own Metal headers, c10/metal, compiled against the shim and run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

# ---- special functions: expression, torch's function, range, largest relative error ----

Reference = Callable[[torch.Tensor], torch.Tensor]
SPECIAL: dict[str, tuple[Reference, float, float, float]] = {
    "erf(x)": (torch.erf, -4, 4, 3e-7),
    "erfinv(x)": (torch.erfinv, -0.99, 0.99, 1e-5),
    "erfcx(x)": (torch.special.erfcx, -3, 20, 2e-6),
    "expm1f(x)": (torch.expm1, -0.3, 0.3, 2e-7),
    "log1p(x)": (torch.log1p, -0.9, 20, 1e-6),
    "i0(x)": (torch.i0, -20, 20, 2e-6),
    "i0e(x)": (torch.special.i0e, -20, 20, 2e-6),
    "i1(x)": (torch.special.i1, 0.1, 20, 2e-6),
    "i1e(x)": (torch.special.i1e, 0.1, 20, 2e-6),
    "log_gamma(x)": (torch.lgamma, 3, 50, 2e-6),
    "digamma(x)": (torch.digamma, 2, 50, 5e-6),
    "polygamma(1, x)": (lambda x: torch.polygamma(1, x), 1, 50, 2e-6),
    "zeta(x, 2.0f)": (lambda x: torch.special.zeta(x, torch.full_like(x, 2)), 1.5, 10, 2e-6),
    "sinc(x)": (torch.sinc, -0.9, 0.9, 2e-6),
    "entr(x)": (torch.special.entr, 1.5, 20, 2e-6),
    "xlogy(x, 3.0f)": (lambda x: torch.xlogy(x, 3.0), 0.1, 20, 2e-6),
    "logaddexp(x, 1.0f)": (lambda x: torch.logaddexp(x, torch.ones_like(x)), -20, 20, 2e-6),
    "bessel_j0_forward(x)": (torch.special.bessel_j0, 0, 2, 2e-6),
    "bessel_y1_forward(x)": (torch.special.bessel_y1, 0.1, 2, 2e-6),
    "modified_bessel_k0_forward(x)": (torch.special.modified_bessel_k0, 0.1, 20, 5e-6),
    "chebyshev_polynomial_t_forward(x, 4)": (lambda x: 8 * x**4 - 8 * x**2 + 1, 0.95, 2, 1e-5),
    "hermite_polynomial_h_forward(x, 3)": (lambda x: 8 * x**3 - 12 * x, 1.5, 3, 1e-5),
    "igamma(x, 3.0f)": (lambda x: torch.igamma(x, torch.full_like(x, 3)), 0.1, 8, 2e-5),
    "igammac(x, 3.0f)": (lambda x: torch.igammac(x, torch.full_like(x, 3)), 0.5, 8, 2e-5),
    "c10::metal::hypot(x, 2.0f)": (lambda x: torch.hypot(x, torch.full_like(x, 2)), -9, 9, 2e-7),
}


def test_special_functions(compile_shader) -> None:
    rows = "".join(
        f"x = in[{k} * n + i]; out[{k} * n + i] = {text};\n" for k, text in enumerate(SPECIAL)
    )
    library = compile_shader(
        f"""
        #include <c10/metal/special_math.h>
        using namespace c10::metal;
        kernel void special(device float* out, constant float* in,
                            uint n [[threads_per_grid]], uint i [[thread_position_in_grid]]) {{
          float x;
          {rows}
        }}"""
    )
    count = 512
    unit = torch.linspace(0, 1, count)
    inputs = torch.stack([low + (high - low) * unit for _, low, high, _ in SPECIAL.values()])
    out = torch.zeros_like(inputs)
    library.special(out, inputs, threads=count)
    for (text, (reference, _, _, bound)), x, y in zip(SPECIAL.items(), inputs, out, strict=True):
        exact = reference(x.double())
        error = ((y - exact) / exact.abs().clamp(min=1e-30)).abs()[exact != 0].max().item()
        assert error <= bound, (text, error)


# ---- reductions over a threadgroup ----

REDUCTIONS = """
#include <c10/metal/reduction_utils.h>
using namespace c10::metal;
template <typename T>
[[kernel]] void reductions(
    device opmath_t<T>* sums, device T* ends, device int* places, constant T* in,
    uint i [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  threadgroup opmath_t<T> sum[32], product[32];
  threadgroup T low[32], high[32], values[32], other_values[32];
  threadgroup int indices[32], other_indices[32];
  const T x = in[i];
  const opmath_t<T> total = threadgroup_sum(sum, x, i, n);
  const opmath_t<T> all = threadgroup_prod(product, T(i % 8 == 0 ? 2 : 1), i, n);
  const T smallest = threadgroup_min(low, x, i, n), largest = threadgroup_max(high, x, i, n);
  const int last = threadgroup_argmax(values, indices, x, int(i), i, n);
  const int first = threadgroup_argmin(other_values, other_indices, x, int(i), i, n);
  const T best = MaxOp<T>::combine(x, MinOp<T>::combine(x, T(3)));
  if (i == 0) {
    sums[0] = total;
    sums[1] = all;
    ends[0] = smallest;
    ends[1] = largest;
    places[0] = first;
    places[1] = last;
  }
  ends[2 + i] = best;
}
#define INSTANTIATE(T)                                                        \\
  template [[host_name("reductions_" #T)]] [[kernel]] void reductions<T>(     \\
      device opmath_t<T>*, device T*, device int*, constant T*, uint, uint);
INSTANTIATE(float)
INSTANTIATE(half)
INSTANTIATE(bfloat)
INSTANTIATE(int)
INSTANTIATE(short)
"""
TYPES = {
    "float": torch.float,
    "half": torch.half,
    "bfloat": torch.bfloat16,
    "int": torch.int,
    "short": torch.short,
}


@pytest.fixture(scope="module")
def reductions(compile_shader):
    return compile_shader(REDUCTIONS)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("threads", [32, 96])
def test_reductions(reductions, name: str, threads: int) -> None:
    dtype = TYPES[name]
    order = torch.randperm(threads, generator=torch.Generator().manual_seed(threads))
    values = (order - 20).to(dtype)
    wide = {torch.half: torch.float, torch.bfloat16: torch.float, torch.short: torch.int}
    sums = torch.zeros(2, dtype=wide.get(dtype, dtype))
    ends, places = torch.zeros(2 + threads, dtype=dtype), torch.zeros(2, dtype=torch.int)
    kernel = getattr(reductions, f"reductions_{name}")
    kernel(sums, ends, places, values, threads=threads, group_size=threads)
    assert sums.tolist() == [values.sum().item(), 2 ** (threads // 8)]
    assert ends[:2].tolist() == [-20, threads - 21]
    assert places.tolist() == [values.argmin().item(), values.argmax().item()]
    assert ends[2:].tolist() == torch.maximum(values, values.clamp(max=3)).tolist()


@pytest.mark.parametrize("name", ["float", "half", "bfloat"])
def test_reductions_carry_nan(reductions, name: str) -> None:
    values = torch.ones(64, dtype=TYPES[name])
    values[41] = torch.nan
    sums = torch.zeros(2)
    ends, places = torch.zeros(66, dtype=TYPES[name]), torch.zeros(2, dtype=torch.int)
    kernel = getattr(reductions, f"reductions_{name}")
    kernel(sums, ends, places, values, threads=64, group_size=64)
    assert sums[0].isnan() and ends[:2].isnan().all() and places.tolist() == [41, 41]
    assert ends[2:].isnan().tolist() == values.isnan().tolist()


# ---- atomics ----


def test_complex_atomic_add(compile_shader) -> None:
    library = compile_shader(
        """
        #include <c10/metal/atomic.h>
        kernel void add(device metal::atomic<float>* sums, uint i [[thread_position_in_grid]]) {
          c10::metal::AtomicType<float2>::atomic_add(sums, i % 2, float2(1, -int(i)));
        }"""
    )
    sums = torch.zeros(4)
    library.add(sums, threads=300, group_size=32)
    assert sums.tolist() == [150, -sum(range(0, 300, 2)), 150, -sum(range(1, 300, 2))]


# ---- random numbers, errors ----


def test_philox_and_error_reports(compile_shader) -> None:
    library = compile_shader(
        """
        #include <metal_stdlib>
        #include <c10/metal/error.h>
        #include <c10/metal/random.h>
        kernel void draw(device uint4* bits, device float2* numbers,
                         uint i [[thread_position_in_grid]]) {
          bits[i] = c10::metal::philox4::rand(7, i);
          numbers[i] = float2(c10::metal::randn(7, i), c10::metal::rand(7, i));
        }
        kernel void report(device c10::metal::ErrorMessages* errors,
                           uint i [[thread_position_in_grid]]) {
          if (i == 3) TORCH_REPORT_ERROR(errors, "index ", -int(i), " is negative");
        }"""
    )
    bits, numbers = torch.zeros(4096, 4, dtype=torch.int), torch.zeros(4096, 2)
    library.draw(bits, numbers, threads=4096)
    assert bits[0].tolist() == philox(seed=7, index=0)
    assert bits[4095].tolist() == philox(seed=7, index=4095)
    normal, uniform = numbers.unbind(1)
    assert abs(normal.mean()) < 0.06 and abs(normal.std() - 1) < 0.05
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.02

    errors = torch.zeros(4 + 30 * 512, dtype=torch.uint8)
    library.report(errors, threads=32)
    assert errors[0].item() == 1
    message = bytes(errors[4 + 256 : 4 + 256 + 250].tolist())
    assert message.split(b"\0")[0] == b"index -3 is negative"


def philox(seed: int, index: int) -> list[int]:
    """Philox of the counter (0, 0, index's halves), as signed words.

    As c10/metal has it: the higher half of a 64-bit number first, and nine rounds.
    """
    mask = 2**32 - 1
    counter = [0, 0, index >> 32, index & mask]
    key = [seed >> 32, seed & mask]
    for _ in range(9):
        low0, low1 = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (low1 >> 32) ^ counter[1] ^ key[0],
            low1 & mask,
            (low0 >> 32) ^ counter[3] ^ key[1],
            low0 & mask,
        ]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return [word - 2**32 if word >> 31 else word for word in counter]

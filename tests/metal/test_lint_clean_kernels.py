"""Kernels in the manner of PyTorch's and MLX's: the lint has nothing to say, and they run right."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from mpskit.metal.checking import check

KERNELS = Path(__file__).parent.parent / "kernels/lint/clean"
AS_INT32 = "int32"


@pytest.fixture(scope="module")
def library(compile_shader: Callable[..., Any]) -> Callable[..., Any]:
    return lambda name, **options: compile_shader(KERNELS / f"{name}.metal", **options)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("file", sorted(KERNELS.glob("*.metal")), ids=lambda file: file.stem)
def test_the_lint_has_nothing_to_say(file: Path) -> None:
    found = check(file, include_dirs=(), metal_version=320)
    assert found.diagnostics == ()


def layout(sizes: tuple[int, ...], *tensors: torch.Tensor) -> bytes:
    """`Layout`: sizes and strides, innermost dimension first, padded to four."""
    four = [0] * (4 - len(sizes))
    strides = [s for t in tensors for s in [*reversed(t.stride()), *four]]
    return struct.pack("<5I4x12q", len(sizes), *reversed(sizes), *four, *strides)


@pytest.mark.parametrize(
    "name, dtype, operation",
    [
        ("add_strided_float", torch.float32, torch.add),
        ("add_strided_half", torch.float16, torch.add),
        ("add_strided_int", torch.int32, torch.add),
        ("hypot_strided_float", torch.float32, torch.hypot),
        ("hypot_strided_bfloat", torch.bfloat16, torch.hypot),
    ],
)
def test_elementwise_strided(library, name, dtype, operation):
    a = (10 * torch.randn(3, 4, 5)).to(dtype).transpose(0, 2)
    b = (10 * torch.randn(5, 1, 3)).to(dtype).expand(5, 4, 3)
    out = torch.empty(5, 4, 3, dtype=dtype)
    kernel = getattr(library("elementwise_strided"), name)
    kernel(out, a, b, layout(out.shape, out, a, b), threads=out.numel())
    torch.testing.assert_close(out, operation(a, b))


@pytest.mark.parametrize("size", [1, 31, 1000])
@pytest.mark.parametrize("group", [32, 256])
def test_reduction(library, size, group):
    kernels = library("reduction")
    x = torch.randn(5, size)
    for name, dtype, out_dtype, expected in (
        ("row_reduce_sum_float", torch.float32, torch.float32, x.sum(1)),
        ("row_reduce_sum_half", torch.float16, torch.float32, x.half().float().sum(1)),
        ("row_reduce_max_float", torch.float32, torch.float32, x.amax(1)),
        ("row_reduce_sum_int", torch.int32, torch.int32, x.int().sum(1).int()),
    ):
        out = torch.empty(5, dtype=out_dtype)
        getattr(kernels, name)(x.to(dtype), out, size, threads=5 * group, group_size=group)
        torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [5, 64, 1111])
def test_scan(library, size):
    x = torch.randn(3, size)
    out = torch.empty_like(x)
    library("scan").cumsum_float(
        x, out, size, threads=3 * 128, group_size=128, arg_casts={2: AS_INT32}
    )
    torch.testing.assert_close(out, x.cumsum(1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "name, dtype, limit", [("float_256", torch.float32, 256), ("int_64", torch.int32, 64)]
)
def test_bitonic_sort(library, name, dtype, limit):
    kernel = getattr(library("bitonic_sort"), f"bitonic_sort_{name}")
    assert kernel_limit(library, name) == limit // 2
    for size in (1, limit // 2 + 3, limit):
        x = (20 * torch.randn(4, size)).round().to(dtype)
        out, indices = torch.empty_like(x), torch.empty(4, size, dtype=torch.int32)
        kernel(x, out, indices, size, threads=4 * limit // 2, group_size=limit // 2,
               arg_casts={3: AS_INT32})  # fmt: skip
        values, places = x.sort(dim=1, stable=True)
        assert torch.equal(out, values)
        assert torch.equal(indices.long(), places)


def kernel_limit(library: Callable[..., Any], name: str) -> int:
    staged = library("bitonic_sort")
    return getattr(staged._library, f"bitonic_sort_{name}").max_threads_per_threadgroup


@pytest.mark.parametrize("rows, columns", [(1, 7), (33, 100), (64, 257)])
def test_gemv(library, rows, columns):
    for name, dtype, per_group, group in (
        ("gemv_float32_bm4_tm4_tn4", torch.float32, 16, 128),
        ("gemv_float16_bm2_tm1_tn2", torch.float16, 2, 64),
    ):
        matrix, vector = torch.randn(rows, columns).to(dtype), torch.randn(columns).to(dtype)
        out = torch.empty(rows, dtype=dtype)
        groups = -(-rows // per_group)
        getattr(library("gemv"), name)(
            matrix, vector, out, columns, rows, threads=groups * group, group_size=group,
            arg_casts={3: AS_INT32, 4: AS_INT32},
        )  # fmt: skip
        expected = (matrix.double() @ vector.double()).to(dtype)
        torch.testing.assert_close(out, expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name, dtype", [("float", torch.float32), ("half", torch.float16)])
def test_matmul(library, name, dtype):
    m, n, k = 35, 18, 50
    a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
    c = torch.empty(m, n)
    getattr(library("matmul_simdgroup"), f"matmul_{name}")(
        a, b, c, struct.pack("<3I", m, n, k), threads=(2 * 128, 3), group_size=(128, 1)
    )
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "name, dtype, dim, tolerance",
    [("float_64", torch.float32, 64, 1e-5), ("bfloat_128", torch.bfloat16, 128, 2e-2)],
)
def test_attention(library, masked, name, dtype, dim, tolerance):
    q, k, v = (torch.randn(n, dim).to(dtype) for n in (3, 21, 21))
    mask = torch.rand(3, 21) > 0.3
    out = torch.empty_like(q)
    extra = (mask,) if masked else ()
    kernels = library("attention_row", function_constants={"has_mask": masked})
    getattr(kernels, f"attention_{name}")(
        q, k, v, out, 21, 0.125, *extra, threads=3 * 128, group_size=128, arg_casts={4: AS_INT32}
    )
    expected = F.scaled_dot_product_attention(
        q[None].float(), k[None].float(), v[None].float(), mask if masked else None, scale=0.125
    )[0]
    torch.testing.assert_close(out.float(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "name, dtype", [("float", torch.float32), ("half", torch.float16), ("bfloat", torch.bfloat16)]
)
def test_layer_norm(library, name, dtype):
    x = (3 + torch.randn(4, 300)).to(dtype)
    weight, bias = torch.randn(300).to(dtype), torch.randn(300).to(dtype)
    out = torch.empty_like(x)
    getattr(library("layer_norm"), f"layer_norm_{name}")(
        x, out, weight, bias, 300, 1e-5, threads=4 * 64, group_size=64, arg_casts={4: AS_INT32}
    )
    expected = F.layer_norm(x.float(), (300,), weight.float(), bias.float(), 1e-5).to(dtype)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(out, expected, rtol=tolerance, atol=tolerance)


def test_dropout(library):
    x = torch.randn(4096)
    out, mask = torch.empty_like(x), torch.empty(4096, dtype=torch.bool)
    kernel = library("dropout").dropout_float
    kernel(out, mask, x, 0.25, (1234, 8), threads=4096)
    assert 0.72 < mask.float().mean() < 0.78
    torch.testing.assert_close(out, torch.where(mask, x / 0.75, torch.zeros_like(x)))
    again = torch.empty_like(mask)
    kernel(out, again, x, 0.25, (1234, 8), threads=4096)
    assert torch.equal(mask, again)
    shifted = torch.empty_like(mask)
    kernel(out, shifted, x, 0.25, (1234, 9), threads=4096)
    assert torch.equal(shifted[:-1], mask[1:])


def test_histogram(library):
    x = torch.randn(5000)
    counts = torch.zeros(50, dtype=torch.int32)
    library("histogram").histogram(
        x, counts, 5000, 50, (-3.0, 3.0), threads=512, group_size=128,
        arg_casts={2: AS_INT32, 3: AS_INT32},
    )  # fmt: skip
    expected = torch.histc(x, 50, -3, 3)
    assert (counts - expected).abs().sum() <= 2, "but for values on a border"
    assert counts.sum() == expected.sum()


def test_transpose(library):
    x = torch.randint(0, 255, (37, 50), dtype=torch.uint8)
    out = torch.empty(50, 37, dtype=torch.uint8)
    library("transpose").transpose_uchar(
        x, out, (37, 50), threads=(64, 48), group_size=(16, 16), arg_casts={2: AS_INT32}
    )
    assert torch.equal(out, x.T)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary(library, interleaved):
    x = torch.randn(6, 16)
    out, back = torch.empty_like(x), torch.empty_like(x)
    for forward, source, target in ((True, x, out), (False, out, back)):
        constants = {"forward": forward, "interleaved": interleaved, 3: 10.0}
        library("rotary", function_constants=constants).rope_float32(
            source, target, 5, threads=(8, 6), group_size=(8, 1), arg_casts={2: AS_INT32}
        )
    angle = (torch.arange(6)[:, None] + 5) * 2 ** (-10 * torch.arange(8) / 8)
    first, second = (x[:, ::2], x[:, 1::2]) if interleaved else (x[:, :8], x[:, 8:])
    pair = torch.complex(first, second) * torch.polar(torch.ones_like(angle), angle)
    got = (out[:, ::2], out[:, 1::2]) if interleaved else (out[:, :8], out[:, 8:])
    torch.testing.assert_close(torch.complex(*got), pair, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(back, x, rtol=1e-4, atol=1e-4)

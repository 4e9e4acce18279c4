"""What the cpu backend's library promises where the specification leaves a result open."""

from __future__ import annotations

import torch

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
FROM_INACTIVE_LANES = [
    "simd_shuffle(x, ushort(31))",
    "simd_broadcast(x, 31)",
    "simd_shuffle_xor(x, 31)",
    "simd_shuffle_down(x, 31)",
    "simd_shuffle_rotate_up(x, 1)",
    "simd_shuffle_and_fill_up(x, x, 1)",
    "quad_shuffle_xor(x, 3)",
]


def test_what_an_inactive_lane_would_give_is_poison(compile_shader) -> None:
    rows = "".join(f"out[32 * {i} + lane] = {t};\n" for i, t in enumerate(FROM_INACTIVE_LANES))
    library = compile_shader(
        f"""{HEADER}kernel void f(device float* out, uint lane [[thread_index_in_simdgroup]]) {{
          const float x = lane;
          if (lane == 31 || lane == 3) return;
          {rows}
        }}"""
    )
    out = torch.zeros(len(FROM_INACTIVE_LANES), 32)
    library.f(out, threads=32, group_size=32)
    assert out[:, 0].isnan().all()


def test_float_sums_are_a_butterfly(compile_shader) -> None:
    library = compile_shader(
        f"""{HEADER}kernel void total(device float* x, uint i [[thread_position_in_grid]]) {{
          x[i] = simd_sum(x[i]);
        }}"""
    )
    x = 1e3 * torch.randn(32, generator=torch.Generator().manual_seed(5))
    tree = x.clone()
    while tree.numel() > 1:
        tree = tree[: tree.numel() // 2] + tree[tree.numel() // 2 :]
    library.total(x)
    assert x.tolist() == [tree.item()] * 32

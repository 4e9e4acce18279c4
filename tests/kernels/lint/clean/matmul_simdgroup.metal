// C = A B in tiles of 16 x 16, four simdgroups with an 8 x 8 matrix each.
#include <metal_simdgroup_matrix>
#include <metal_stdlib>

using namespace metal;

constant constexpr ushort TILE = 16;
constant constexpr ushort FRAGMENT = 8;

struct MatmulParams {
  uint m, n, k;
};

template <typename T>
kernel void matmul(
    device const T* a [[buffer(0)]],
    device const T* b [[buffer(1)]],
    device float* c [[buffer(2)]],
    constant MatmulParams& params [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    ushort lid [[thread_index_in_threadgroup]],
    ushort simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup T tile_a[TILE][TILE];
  threadgroup T tile_b[TILE][TILE];
  threadgroup float tile_c[TILE * TILE];
  const ushort row = FRAGMENT * (simdgroup / 2);
  const ushort column = FRAGMENT * (simdgroup % 2);
  simdgroup_matrix<float, 8, 8> sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);

  for (uint start = 0; start < params.k; start += TILE) {
    for (ushort i = lid; i < TILE * TILE; i += 128) {
      const ushort y = i / TILE, x = i % TILE;
      const uint at_m = group.y * TILE + y, at_n = group.x * TILE + x;
      const bool in_a = at_m < params.m && start + x < params.k;
      const bool in_b = start + y < params.k && at_n < params.n;
      tile_a[y][x] = in_a ? a[at_m * params.k + start + x] : T(0);
      tile_b[y][x] = in_b ? b[(start + y) * params.n + at_n] : T(0);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (ushort k = 0; k < TILE; k += FRAGMENT) {
      simdgroup_matrix<T, 8, 8> left, right;
      simdgroup_load(left, &tile_a[row][k], TILE);
      simdgroup_load(right, &tile_b[k][column], TILE);
      simdgroup_multiply_accumulate(sum, left, right, sum);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  simdgroup_store(sum, tile_c + row * TILE + column, TILE);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (ushort i = lid; i < TILE * TILE; i += 128) {
    const uint y = group.y * TILE + i / TILE, x = group.x * TILE + i % TILE;
    if (y < params.m && x < params.n) {
      c[y * params.n + x] = tile_c[i];
    }
  }
}

template [[host_name("matmul_float")]] kernel void matmul<float>(
    device const float*, device const float*, device float*, constant MatmulParams&,
    uint2, ushort, ushort);
template [[host_name("matmul_half")]] kernel void matmul<half>(
    device const half*, device const half*, device float*, constant MatmulParams&,
    uint2, ushort, ushort);

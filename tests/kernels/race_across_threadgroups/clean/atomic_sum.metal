// launch: threads=128 group_size=32
// args: ones:float32:128 zeros:float32:1
#include <metal_stdlib>
using namespace metal;

kernel void atomic_sum(
    device const float* x,
    device atomic_float* out,
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const float sum = simd_sum(x[i]);
  if (lane == 0) atomic_fetch_add_explicit(out, sum, memory_order_relaxed);
}

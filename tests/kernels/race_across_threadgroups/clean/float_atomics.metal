// launch: threads=64 group_size=16
// args: zeros:float32:1 ones:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void float_atomics(
    device atomic_float* total, device const float* x, uint i [[thread_position_in_grid]]) {
  const float sum = simd_sum(x[i]);
  if (i % 16 == 0) atomic_fetch_add_explicit(total, sum, memory_order_relaxed);
}

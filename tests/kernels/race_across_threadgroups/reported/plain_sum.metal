// launch: threads=128 group_size=32
// args: ones:float32:128 zeros:float32:1
#include <metal_stdlib>
using namespace metal;

kernel void plain_sum(
    device const float* x,
    device float* out,
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const float sum = simd_sum(x[i]);
  if (lane == 0) out[0] += sum;
}

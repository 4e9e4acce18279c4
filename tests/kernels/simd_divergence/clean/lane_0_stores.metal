// launch: threads=64 group_size=32
// args: ones:float32:64 zeros:float32:2
#include <metal_stdlib>
using namespace metal;

kernel void lane_0_stores(
    device const float* x,
    device float* out,
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  const float sum = simd_sum(x[i]);
  if (lane == 0) out[group] = sum;
}

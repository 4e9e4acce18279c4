// launch: threads=128 group_size=32
// args: ones:float32:128 zeros:float32:4
#include <metal_stdlib>
using namespace metal;

kernel void partial_results(
    device const float* x,
    device float* partial,
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  const float sum = simd_sum(x[i]);
  if (lane == 0) partial[group] = sum;
}

// launch: threads=128 group_size=128
// args: ones:float32:128 zeros:float32:1
#include <metal_stdlib>
using namespace metal;

kernel void maximum_in_lane_0(
    device const float* x,
    device float* out,
    uint i [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float partial[4];
  if (lane == 0) partial[simdgroup] = simd_max(x[i]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) out[0] = max(max(partial[0], partial[1]), max(partial[2], partial[3]));
}

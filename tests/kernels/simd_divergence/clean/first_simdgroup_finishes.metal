// launch: threads=128 group_size=128
// args: ones:float32:128 zeros:float32:1
#include <metal_stdlib>
using namespace metal;

kernel void first_simdgroup_finishes(
    device const float* x,
    device float* out,
    uint i [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float partial[4];
  const float sum = simd_sum(x[i]);
  if (lane == 0) partial[simdgroup] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup == 0) {
    const float total = simd_sum(lane < 4 ? partial[lane] : 0.0f);
    if (lane == 0) out[0] = total;
  }
}

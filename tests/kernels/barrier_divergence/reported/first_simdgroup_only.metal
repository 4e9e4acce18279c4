// launch: threads=96 group_size=96
// args: zeros:float32:96
#include <metal_stdlib>
using namespace metal;

kernel void first_simdgroup_only(
    device float* x,
    uint i [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float total;
  if (simdgroup == 0) {
    const float sum = simd_sum(float(i));
    if (i == 0) total = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[i] = total;
  }
}

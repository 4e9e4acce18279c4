// The first simdgroup may be a round ahead: nothing makes it wait for the others to have read.
// launch: threads=128 group_size=128
// args: ones:float32:512 zeros:float32:512
#include <metal_stdlib>
using namespace metal;

kernel void overwritten_before_the_next_barrier(
    device const float* x,
    device float* out,
    uint i [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float total[1];
  for (uint row = 0; row < 4; ++row) {
    const float sum = simd_sum(x[row * 128 + lane]);
    if (simdgroup == 0 && lane == 0) total[0] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[row * 128 + i] = x[row * 128 + i] / total[0];
  }
}

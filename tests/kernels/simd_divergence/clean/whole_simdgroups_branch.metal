// launch: threads=64 group_size=64
// args: ones:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void whole_simdgroups_branch(
    device float* x,
    uint i [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  if (simdgroup == 0) {
    x[i] = simd_sum(x[i]);
  } else {
    x[i] = simd_max(x[i]) + simd_min(x[i]);
  }
}

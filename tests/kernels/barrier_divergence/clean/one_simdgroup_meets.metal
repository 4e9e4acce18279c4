// launch: threads=64 group_size=64
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void one_simdgroup_meets(
    device float* x,
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float tile[32];
  if (simdgroup == 1) {
    tile[lane] = lane;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    x[lane] = tile[31 - lane];
  }
}

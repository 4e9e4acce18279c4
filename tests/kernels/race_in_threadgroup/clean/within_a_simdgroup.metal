// launch: threads=64 group_size=64
// args: ones:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void within_a_simdgroup(
    device float* x,
    uint i [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = tile[i - lane + 31 - lane];
}

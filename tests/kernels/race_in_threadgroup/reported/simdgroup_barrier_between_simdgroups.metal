// launch: threads=64 group_size=64
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void simdgroup_barrier_between_simdgroups(
    device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = i;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = tile[(i + 32) % 64];
}

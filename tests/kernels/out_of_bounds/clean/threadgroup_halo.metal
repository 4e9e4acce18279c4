// launch: threads=64 group_size=64
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void threadgroup_halo(device float* out, uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[65];
  tile[i] = i;
  if (i == 63) tile[64] = 0.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = tile[i + 1];
}

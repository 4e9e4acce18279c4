// launch: threads=64 group_size=64
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void threadgroup_array(device float* out, uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = tile[i + 1];
}

// launch: threads=64 group_size=64
// args: zeros:float32:64 zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void both_flags(
    device float* scratch, device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  scratch[i] = i;
  tile[i] = i;
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i] + tile[63 - i];
}

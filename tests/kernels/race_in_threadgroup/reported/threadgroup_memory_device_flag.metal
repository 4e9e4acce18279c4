// launch: threads=64 group_size=64
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void threadgroup_memory_device_flag(
    device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = i;
  threadgroup_barrier(mem_flags::mem_device);
  out[i] = tile[63 - i];
}

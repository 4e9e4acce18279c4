// launch: threads=128 group_size=32
// args: zeros:float32:128
#include <metal_stdlib>
using namespace metal;

kernel void threadgroup_memory_is_their_own(
    device float* out, uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[32];
  tile[t] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = tile[31 - t];
}

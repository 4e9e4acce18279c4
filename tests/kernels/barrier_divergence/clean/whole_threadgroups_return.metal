// launch: threads=128 group_size=32
// args: ones:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void whole_threadgroups_return(
    device float* x,
    uint t [[thread_index_in_threadgroup]],
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup float tile[32];
  if (group >= 2) return;
  tile[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = tile[31 - t];
}

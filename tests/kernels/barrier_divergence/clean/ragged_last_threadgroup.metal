// launch: threads=50 group_size=32
// args: ones:float32:50
#include <metal_stdlib>
using namespace metal;

kernel void ragged_last_threadgroup(
    device float* x,
    uint i [[thread_position_in_grid]],
    uint t [[thread_index_in_threadgroup]],
    uint size [[threads_per_threadgroup]]) {
  threadgroup float tile[32];
  tile[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = tile[size - 1 - t];
}

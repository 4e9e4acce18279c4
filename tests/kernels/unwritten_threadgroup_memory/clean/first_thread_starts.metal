// launch: threads=64 group_size=32
// args: zeros:int32:64
#include <metal_stdlib>
using namespace metal;

kernel void first_thread_starts(
    device int* out, uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup int start;
  if (t == 0) start = 5;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = start;
}

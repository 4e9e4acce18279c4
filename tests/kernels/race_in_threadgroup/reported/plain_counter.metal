// launch: threads=64 group_size=64
// args: zeros:int32:64
#include <metal_stdlib>
using namespace metal;

kernel void plain_counter(device int* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup int count;
  if (i == 0) count = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  count += 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = count;
}

// launch: threads=128 group_size=32 threadgroup=128
// args: zeros:float32:128
#include <metal_stdlib>
using namespace metal;

kernel void every_threadgroup_anew(
    device float* out,
    threadgroup float* scratch [[threadgroup(0)]],
    uint i [[thread_position_in_grid]],
    uint t [[thread_index_in_threadgroup]]) {
  scratch[t] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[31 - t];
}

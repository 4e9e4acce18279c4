// launch: threads=16 group_size=16 threadgroup=128
// args: zeros:float32:16
#include <metal_stdlib>
using namespace metal;

kernel void argument_longer_than_written(
    device float* out,
    threadgroup float* scratch [[threadgroup(0)]],
    uint i [[thread_index_in_threadgroup]]) {
  scratch[i] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[i + 8];
}

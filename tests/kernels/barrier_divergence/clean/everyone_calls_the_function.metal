// launch: threads=64 group_size=64
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

inline float meet_and_read(threadgroup float* tile, uint i) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return tile[63 - i];
}
kernel void everyone_calls_the_function(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = i;
  x[i] = meet_and_read(tile, i);
}

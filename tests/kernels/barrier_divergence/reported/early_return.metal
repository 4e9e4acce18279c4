// launch: threads=256 group_size=256
// args: ones:float32:256
#include <metal_stdlib>
using namespace metal;

kernel void early_return(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[128];
  if (i >= 128) return;
  tile[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = tile[127 - i];
}

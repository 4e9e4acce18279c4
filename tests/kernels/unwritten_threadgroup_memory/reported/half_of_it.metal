// launch: threads=64 group_size=64
// args: ones:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void half_of_it(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  if (i < 32) tile[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = tile[63 - i];
}

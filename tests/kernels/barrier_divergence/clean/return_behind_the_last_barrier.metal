// launch: threads=64 group_size=64
// args: ones:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void return_behind_the_last_barrier(
    device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i != 0) return;
  float sum = 0.0f;
  for (uint k = 0; k < 64; ++k) sum += tile[k];
  x[0] = sum;
}

// launch: threads=32 group_size=32
// args: zeros:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void filled_in_strides(device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[100];
  for (uint k = i; k < 100; k += 32) tile[k] = 0.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = tile[3 * i];
}

// launch: threads=256 group_size=256
// args: ones:float32:256 zeros:float32:1
#include <metal_stdlib>
using namespace metal;

kernel void tree_reduction(
    device const float* x, device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[256];
  tile[i] = x[i];
  for (uint width = 128; width > 0; width /= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i < width) tile[i] += tile[i + width];
  }
  if (i == 0) out[0] = tile[0];
}

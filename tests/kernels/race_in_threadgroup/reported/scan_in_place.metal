// launch: threads=64 group_size=64
// args: ones:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void scan_in_place(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint distance = 1; distance < 64; distance *= 2) {
    const float left = i >= distance ? tile[i - distance] : 0.0f;
    tile[i] += left;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  x[i] = tile[i];
}

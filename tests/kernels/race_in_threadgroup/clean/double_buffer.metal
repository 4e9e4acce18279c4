// launch: threads=64 group_size=64
// args: ones:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void double_buffer(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[2][64];
  uint from = 0;
  tile[from][i] = x[i];
  for (uint distance = 1; distance < 64; distance *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    tile[1 - from][i] = tile[from][i] + (i >= distance ? tile[from][i - distance] : 0.0f);
    from = 1 - from;
  }
  x[i] = tile[from][i];
}

// launch: threads=32 group_size=32
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void all_written(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[32];
  tile[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = tile[31 - i];
}

// A tile is one piece of memory: its first row goes on in the second.
// launch: threads=16 group_size=16
// args: zeros:float32:16
#include <metal_stdlib>
using namespace metal;

kernel void from_row_to_row(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[4][4];
  tile[0][i] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = tile[0][15 - i];
}

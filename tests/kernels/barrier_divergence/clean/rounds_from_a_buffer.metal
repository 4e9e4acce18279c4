// launch: threads=64 group_size=64
// args: zeros:float32:64 4
#include <metal_stdlib>
using namespace metal;

kernel void rounds_from_a_buffer(
    device float* x, constant uint& rounds, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float cells[64];
  cells[i] = i;
  for (uint k = 0; k < rounds; ++k) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float next = cells[(i + 1) % 64];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    cells[i] = next;
  }
  x[i] = cells[i];
}

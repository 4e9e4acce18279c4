// launch: threads=64 group_size=64
// args: zeros:float32:64 3
#include <metal_stdlib>
using namespace metal;

kernel void even_loops(
    device float* x, constant uint& rounds, uint i [[thread_index_in_threadgroup]]) {
  for (uint k = 0; k < rounds; ++k) {
    const float other = x[63 - i];
    threadgroup_barrier(mem_flags::mem_device);
    x[i] += other + k;
    threadgroup_barrier(mem_flags::mem_device);
  }
}

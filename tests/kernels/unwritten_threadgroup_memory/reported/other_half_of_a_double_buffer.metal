// launch: threads=32 group_size=32
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void other_half_of_a_double_buffer(
    device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float halves[2][32];
  halves[0][i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 1; k < 3; ++k) {
    halves[k % 2][i] += halves[(k + 1) % 2][31 - i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  x[i] = halves[0][i];
}

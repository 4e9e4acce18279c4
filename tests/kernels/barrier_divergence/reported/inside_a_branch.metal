// launch: threads=128 group_size=128
// args: zeros:float32:128
#include <metal_stdlib>
using namespace metal;

kernel void inside_a_branch(device float* x, uint i [[thread_index_in_threadgroup]]) {
  if (i < 64) {
    x[i] = i;
    threadgroup_barrier(mem_flags::mem_device);
  }
  x[i] += 1.0f;
}

// launch: threads=64 group_size=64
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void one_for_each_branch(device float* x, uint i [[thread_index_in_threadgroup]]) {
  if (i % 2 == 0) {
    x[i] = 1.0f;
    threadgroup_barrier(mem_flags::mem_device);
    x[i] += 1.0f;
  } else {
    x[i] = 2.0f;
    threadgroup_barrier(mem_flags::mem_device);
    x[i] *= 4.0f;
  }
}

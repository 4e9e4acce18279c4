// launch: threads=64 group_size=64
// args: arange:int32:64
#include <metal_stdlib>
using namespace metal;

kernel void return_inside_a_loop(device int* x, uint i [[thread_index_in_threadgroup]]) {
  for (int k = 0; k < 3; ++k) {
    if (x[i] == 40) return;
    threadgroup_barrier(mem_flags::mem_device);
    x[i] += 1;
  }
}

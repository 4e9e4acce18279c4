// launch: threads=64 group_size=64
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void uneven_loops(device float* x, uint i [[thread_index_in_threadgroup]]) {
  for (uint k = i; k < 100; k += 64) {
    x[i] += k;
    threadgroup_barrier(mem_flags::mem_none);
  }
}

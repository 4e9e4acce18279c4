// launch: threads=64 group_size=64
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

inline void store_and_meet(device float* x, uint i) {
  x[i] = i;
  threadgroup_barrier(mem_flags::mem_device);
}
kernel void in_a_function(device float* x, uint i [[thread_index_in_threadgroup]]) {
  if (i != 5) store_and_meet(x, i);
}

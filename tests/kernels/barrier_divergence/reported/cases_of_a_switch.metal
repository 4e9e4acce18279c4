// launch: threads=32 group_size=32
// args: zeros:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void cases_of_a_switch(device float* x, uint i [[thread_index_in_threadgroup]]) {
  switch (i % 4) {
    case 0:
      x[i] = 1.0f;
      break;
    default:
      x[i] = 2.0f;
      threadgroup_barrier(mem_flags::mem_device);
  }
}

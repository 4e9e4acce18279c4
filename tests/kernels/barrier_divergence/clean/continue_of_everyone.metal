// launch: threads=64 group_size=32
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void continue_of_everyone(
    device float* x,
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]]) {
  for (uint k = 0; k < 4; ++k) {
    if (k % 2 == group % 2) continue;
    x[i] += k;
    threadgroup_barrier(mem_flags::mem_none);
  }
}

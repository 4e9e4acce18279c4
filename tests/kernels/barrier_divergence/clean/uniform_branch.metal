// launch: threads=64 group_size=32
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void uniform_branch(
    device float* x,
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]]) {
  x[i] = i;
  if (group == 1) threadgroup_barrier(mem_flags::mem_device);
  x[i] += 1.0f;
}

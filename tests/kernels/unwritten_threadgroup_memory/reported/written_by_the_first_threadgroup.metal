// launch: threads=64 group_size=32
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void written_by_the_first_threadgroup(
    device float* out,
    uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup float scale;
  if (group == 0 && i == 0) scale = 2.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scale;
}

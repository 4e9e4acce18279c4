// launch: threads=64 group_size=32
// args: ones:float32:64 64
#include <metal_stdlib>
using namespace metal;

kernel void stencil_in_place(
    device float* x, constant uint& count, uint i [[thread_position_in_grid]]) {
  const float right = i + 1 < count ? x[i + 1] : 0.0f;
  threadgroup_barrier(mem_flags::mem_device);
  x[i] += right;
}

// launch: threads=32 group_size=32
// args: ones:float32:100 100
#include <metal_stdlib>
using namespace metal;

kernel void grid_stride(
    device float* x,
    constant uint& count,
    uint i [[thread_position_in_grid]],
    uint stride [[threads_per_grid]]) {
  for (uint k = i; k < count; k += stride) x[k] *= 2.0f;
}

// launch: threads=256 group_size=64
// args: ones:float32:200 zeros:float32:200 200
#include <metal_stdlib>
using namespace metal;

kernel void guarded(
    device const float* x,
    device float* out,
    constant uint& count,
    uint i [[thread_position_in_grid]]) {
  if (i >= count) return;
  out[i] = 2.0f * x[i];
}

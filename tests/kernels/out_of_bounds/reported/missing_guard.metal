// launch: threads=256 group_size=64
// args: ones:float32:200 zeros:float32:256
#include <metal_stdlib>
using namespace metal;

kernel void missing_guard(
    device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = 2.0f * x[i];
}

// launch: threads=4 group_size=4
// args: ones:float32:32 zeros:float32:4
#include <metal_stdlib>
using namespace metal;

kernel void scalars(
    device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  device const float* from = x + 1 + 4 * i;
  out[i] = dot(float4(from[0], from[1], from[2], from[3]), float4(1.0f));
}

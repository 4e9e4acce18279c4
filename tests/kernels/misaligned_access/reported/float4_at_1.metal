// launch: threads=4 group_size=4
// args: ones:float32:32 zeros:float32:4
#include <metal_stdlib>
using namespace metal;

kernel void float4_at_1(
    device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  device const float4& four = *(device const float4*)(x + 1 + 4 * i);
  out[i] = four.x + four.w;
}

// launch: threads=4 group_size=4
// args: ones:float32:32 zeros:float32:4
#include <metal_stdlib>
using namespace metal;

kernel void float2_at_odd(
    device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  device const float2& pair = *(device const float2*)(x + 3 * i);
  out[i] = pair.x + pair.y;
}

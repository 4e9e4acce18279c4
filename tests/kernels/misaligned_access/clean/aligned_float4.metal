// launch: threads=4 group_size=4
// args: ones:float32:32 zeros:float32:4
#include <metal_stdlib>
using namespace metal;

kernel void aligned_float4(
    device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = dot(*(device const float4*)(x + 4 + 4 * i), float4(1.0f));
}

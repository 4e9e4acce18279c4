// launch: threads=4 group_size=4
// args: ones:float32:32 zeros:float32:4
#include <metal_stdlib>
using namespace metal;

kernel void copied_by_value(
    device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  const float4 four = *(device const float4*)(x + 2 + 4 * i);
  out[i] = four.x + four.y + four.z + four.w;
}

// launch: threads=3 group_size=3
// args: arange:float32:9 zeros:float32:3
#include <metal_stdlib>
using namespace metal;

kernel void last_packed_vector(
    device const packed_float3* x, device float* out, uint i [[thread_position_in_grid]]) {
  const float3 three = x[i];
  out[i] = three.x + three.y + three.z;
}

// launch: threads=8 group_size=8
// args: ones:float32:24 zeros:float32:8
#include <metal_stdlib>
using namespace metal;

kernel void packed_vectors(
    device const packed_float3* x, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = length(float3(x[i]));
}

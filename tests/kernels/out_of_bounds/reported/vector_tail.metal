// launch: threads=8 group_size=8
// args: ones:float32:30 zeros:float32:8
#include <metal_stdlib>
using namespace metal;

kernel void vector_tail(
    device const float4* x, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = dot(x[i], float4(1.0f));
}

// launch: threads=5 group_size=5
// args: ones:float16:16 zeros:float32:5
#include <metal_stdlib>
using namespace metal;

kernel void packed_half3s(
    device const packed_half3* x, device float* out, uint i [[thread_position_in_grid]]) {
  const half3 three = x[i];
  out[i] = three.x + three.y + three.z;
}

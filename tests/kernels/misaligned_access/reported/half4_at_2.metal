// launch: threads=4 group_size=4
// args: ones:float16:32 zeros:float32:4
#include <metal_stdlib>
using namespace metal;

kernel void half4_at_2(
    device const half* x, device float* out, uint i [[thread_position_in_grid]]) {
  device const half4& four = *(device const half4*)(x + 2 + 4 * i);
  out[i] = float(four.x + four.w);
}

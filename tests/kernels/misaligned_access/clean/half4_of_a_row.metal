// launch: threads=4 group_size=4
// args: ones:float16:4x8 zeros:float32:4
#include <metal_stdlib>
using namespace metal;

kernel void half4_of_a_row(
    device const half* x, device float* out, uint row [[thread_position_in_grid]]) {
  const half4 four = *(device const half4*)(x + 8 * row + 4);
  out[row] = float(four.x + four.w);
}

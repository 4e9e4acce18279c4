// A row of 30 floats: every other one starts between two multiples of 16 bytes.
// launch: threads=4 group_size=4
// args: ones:float32:4x30 zeros:float32:4 30
#include <metal_stdlib>
using namespace metal;

kernel void row_pitch(
    device const float* x,
    device float* out,
    constant uint& columns,
    uint row [[thread_position_in_grid]]) {
  device const float4* vectors = (device const float4*)(x + row * columns);
  out[row] = vectors[0].x;
}

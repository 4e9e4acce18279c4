// launch: threads=2 group_size=2
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void matrix_column(
    device const float4x4* matrices, uint i [[thread_position_in_grid]]) {
  device float4x4* writable = (device float4x4*)matrices;
  writable[i][2] = float4(0.0f);
}

// launch: threads=8x4 group_size=8x4
// args: zeros:float32:4x8
#include <metal_stdlib>
using namespace metal;

constant uint wrong_stride_columns = 8;
kernel void wrong_stride(device float* x, uint2 at [[thread_position_in_grid]]) {
  x[at.y * (wrong_stride_columns + 1) + at.x] = at.x;
}

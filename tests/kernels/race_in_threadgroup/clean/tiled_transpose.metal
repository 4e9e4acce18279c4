// launch: threads=16x16 group_size=16x16
// args: ones:float32:16x16 zeros:float32:16x16
#include <metal_stdlib>
using namespace metal;

kernel void tiled_transpose(
    device const float* x, device float* out, uint2 at [[thread_position_in_threadgroup]]) {
  threadgroup float tile[16][17];
  tile[at.y][at.x] = x[at.y * 16 + at.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[at.y * 16 + at.x] = tile[at.x][at.y];
}

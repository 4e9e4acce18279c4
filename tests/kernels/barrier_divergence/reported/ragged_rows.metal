// launch: threads=8x8 group_size=8x8
// args: ones:float32:6x8 6
#include <metal_stdlib>
using namespace metal;

kernel void ragged_rows(
    device float* x, constant uint& rows, uint2 at [[thread_position_in_grid]]) {
  threadgroup float tile[8][8];
  if (at.y >= rows) {
    return;
  }
  tile[at.y][at.x] = x[8 * at.y + at.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[8 * at.y + at.x] = tile[at.y][7 - at.x];
}

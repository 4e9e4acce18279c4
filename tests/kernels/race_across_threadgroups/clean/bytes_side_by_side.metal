// launch: threads=66 group_size=33
// args: zeros:uint8:66
#include <metal_stdlib>
using namespace metal;

kernel void bytes_side_by_side(device uchar* x, uint i [[thread_position_in_grid]]) {
  x[i] += uchar(i);
}

// launch: threads=4 group_size=4
// args: ones:int32:4 zeros:int32:4
#include <metal_stdlib>
using namespace metal;

kernel void bytes_of_a_word(
    device const uint* x, device uint* out, uint i [[thread_position_in_grid]]) {
  device const uchar* bytes = (device const uchar*)(x + i);
  out[i] = bytes[1] + bytes[3];
}

// launch: threads=4 group_size=4
// args: ones:uint8:32 zeros:int32:4
#include <metal_stdlib>
using namespace metal;

kernel void word_at_a_byte(
    device const uchar* x, device uint* out, uint i [[thread_position_in_grid]]) {
  out[i] = *(device const uint*)(x + 5 * i);
}

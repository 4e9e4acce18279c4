// launch: threads=4 group_size=4
// args: ones:int32:32 zeros:int64:4
#include <metal_stdlib>
using namespace metal;

kernel void long_at_4(device const int* x, device long* out, uint i [[thread_position_in_grid]]) {
  out[i] = *(device const long*)(x + 2 * i + 1);
}

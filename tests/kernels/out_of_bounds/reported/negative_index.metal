// launch: threads=64 group_size=64
// args: ones:int32:64 zeros:int32:64
#include <metal_stdlib>
using namespace metal;

kernel void negative_index(
    device const int* x, device int* out, uint i [[thread_position_in_grid]]) {
  out[i] = x[i] - x[int(i) - 1];
}

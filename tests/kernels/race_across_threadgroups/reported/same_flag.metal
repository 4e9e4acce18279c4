// launch: threads=64 group_size=1
// args: ones:float32:64 zeros:int32:1
#include <metal_stdlib>
using namespace metal;

kernel void same_flag(
    device const float* x, device int* found, uint i [[thread_position_in_grid]]) {
  if (x[i] > 0.0f) *found = 1;
}

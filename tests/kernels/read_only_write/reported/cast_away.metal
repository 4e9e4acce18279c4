// launch: threads=32 group_size=32
// args: zeros:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void cast_away(device const float* x, uint i [[thread_position_in_grid]]) {
  ((device float*)x)[i] = 1.0f;
}

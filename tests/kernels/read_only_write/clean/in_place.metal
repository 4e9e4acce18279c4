// launch: threads=32 group_size=32
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void in_place(device float* x, uint i [[thread_position_in_grid]]) {
  device const float* read = x;
  x[i] = 2.0f * read[i];
}

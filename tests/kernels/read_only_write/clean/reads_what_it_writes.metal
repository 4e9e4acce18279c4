// launch: threads=4 group_size=4
// args: zeros:float32:4
#include <metal_stdlib>
using namespace metal;

kernel void reads_what_it_writes(device float* x, uint i [[thread_position_in_grid]]) {
  device const float* view = x;
  x[i] = 1.0f;
  x[i] = view[i] + 1.0f;
}

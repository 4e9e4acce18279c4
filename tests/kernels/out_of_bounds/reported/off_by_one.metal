// launch: threads=256 group_size=64
// args: zeros:float32:256
#include <metal_stdlib>
using namespace metal;

kernel void off_by_one(device float* x, uint i [[thread_position_in_grid]]) {
  x[i + 1] = 1.0f;
}

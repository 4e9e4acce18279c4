// launch: threads=128 group_size=32
// args: zeros:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void shared_output(device float* out, uint i [[thread_position_in_grid]]) {
  out[i % 32] = i;
}

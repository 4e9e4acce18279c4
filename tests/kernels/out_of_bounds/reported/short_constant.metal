// launch: threads=4 group_size=4
// args: zeros:float32:4 2.5
#include <metal_stdlib>
using namespace metal;

kernel void short_constant(
    device float* out, constant float* weights, uint i [[thread_position_in_grid]]) {
  out[i] = weights[i / 2];
}

// A pointer there is no access there.
// launch: threads=16 group_size=16
// args: ones:float32:16 zeros:float32:16 16
#include <metal_stdlib>
using namespace metal;

kernel void pointer_past_the_end(
    device const float* x,
    device float* out,
    constant uint& count,
    uint i [[thread_position_in_grid]]) {
  device const float* end = x + count;
  float sum = 0.0f;
  for (device const float* at = x + i; at != end; ++at) sum += *at;
  out[i] = sum;
}

// launch: threads=8 group_size=8
// args: ones:float32:30 zeros:float32:8 30
#include <metal_stdlib>
using namespace metal;

kernel void vector_and_tail(
    device const float* x,
    device float* out,
    constant uint& count,
    uint i [[thread_position_in_grid]]) {
  const uint begin = 4 * i;
  float sum = 0.0f;
  if (begin + 4 <= count) {
    sum = dot(*(device const float4*)(x + begin), float4(1.0f));
  } else {
    for (uint k = begin; k < count; ++k) sum += x[k];
  }
  out[i] = sum;
}

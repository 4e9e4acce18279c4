// launch: threads=8 group_size=8
// args: arange:float32:8
#include <metal_stdlib>
using namespace metal;

inline float largest(thread const float* values, uint count) {
  float result = values[0];
  for (uint k = 1; k < count; ++k) result = max(result, values[k]);
  return result;
}

constant float weights[4] = {1, 2, 3, 4};

kernel void array_by_pointer(device float* x, uint i [[thread_position_in_grid]]) {
  float values[6];
  for (uint k = 0; k < 6; ++k) values[k] = weights[(i + k) % 4] * x[i];
  x[i] = largest(values, 6);
}

// launch: threads=2 group_size=2
// args: randn:float32:8 zeros:float32:8
#include <metal_stdlib>
using namespace metal;

kernel void sorted_copy(
    device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  float values[4];
  for (uint k = 0; k < 4; ++k) values[k] = x[4 * i + k];
  for (uint k = 1; k < 4; ++k)
    for (uint n = k; n > 0 && values[n] < values[n - 1]; --n) {
      const float larger = values[n - 1];
      values[n - 1] = values[n];
      values[n] = larger;
    }
  for (uint k = 0; k < 4; ++k) out[4 * i + k] = values[k];
}

// launch: threads=4 group_size=4
// args: ones:float32:4
#include <metal_stdlib>
using namespace metal;

kernel void pointer_behind_an_array(device float* x, uint i [[thread_position_in_grid]]) {
  float values[3] = {x[i], 2.0f, 3.0f};
  float sum = 0.0f;
  for (thread const float* at = values; at != &values[3]; ++at) sum += *at;
  x[i] = sum;
}

// launch: threads=4 group_size=4
// args: ones:float32:4 4
#include <metal_stdlib>
using namespace metal;

kernel void local_array(
    device float* x, constant int& last, uint i [[thread_position_in_grid]]) {
  float powers[4];
  for (int k = 0; k <= last; ++k) powers[k] = k * x[i];
  x[i] = powers[i];
}

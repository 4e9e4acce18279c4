// launch: threads=32 group_size=32
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void sum_without_a_start(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float sums[32];
  for (uint k = 0; k < 4; ++k) sums[i] += x[i];
  x[i] = sums[i];
}

// launch: threads=64 group_size=64
// args: ones:float32:64 5
#include <metal_stdlib>
using namespace metal;

kernel void even_loop(
    device float* x, constant uint& rounds, uint i [[thread_index_in_threadgroup]]) {
  float total = 0.0f;
  for (uint k = 0; k < rounds; ++k) total += simd_sum(x[i] + k);
  x[i] = total;
}

// launch: threads=32 group_size=32
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void uneven_loop(device float* x, uint lane [[thread_index_in_simdgroup]]) {
  float total = 0.0f;
  for (uint k = lane; k < 48; k += 32) total += simd_sum(x[lane]);
  x[lane] = total;
}

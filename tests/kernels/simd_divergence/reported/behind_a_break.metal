// launch: threads=32 group_size=32
// args: arange:int32:32
#include <metal_stdlib>
using namespace metal;

kernel void behind_a_break(device int* x, uint lane [[thread_index_in_simdgroup]]) {
  int total = 0;
  for (int k = 0; k < 4; ++k) {
    if (x[lane] < k) break;
    total += simd_prefix_inclusive_sum(1);
  }
  x[lane] = total;
}

// launch: threads=32 group_size=32
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void select_behind_the_sum(device float* x, uint lane [[thread_index_in_simdgroup]]) {
  const float mine = lane % 2 == 0 ? x[lane] : 0.0f;
  const float sum = simd_sum(mine);
  x[lane] = lane % 2 == 0 ? sum : x[lane];
}

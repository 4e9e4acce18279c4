// launch: threads=32 group_size=32
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void ordered_by_a_simd_operation(
    device float* x, uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float tile[32];
  tile[lane] = x[lane];
  const float total = simd_sum(x[lane]);
  x[lane] = tile[31 - lane] / total;
}

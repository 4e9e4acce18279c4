// launch: threads=32 group_size=32
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void one_for_each_half(device float* x, uint lane [[thread_index_in_simdgroup]]) {
  float value = x[lane];
  if (lane < 16) {
    value = simd_sum(value);
  } else {
    value = simd_max(value);
  }
  x[lane] = value;
}

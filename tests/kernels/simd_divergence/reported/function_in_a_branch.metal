// launch: threads=32 group_size=32
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

inline float mean_of_lanes(float value) {
  return simd_sum(value) / 32.0f;
}
kernel void function_in_a_branch(device float* x, uint lane [[thread_index_in_simdgroup]]) {
  const float value = x[lane];
  x[lane] = lane % 2 == 0 ? mean_of_lanes(value) : value;
}

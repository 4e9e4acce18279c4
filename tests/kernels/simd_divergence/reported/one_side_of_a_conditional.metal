// launch: threads=32 group_size=32
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void one_side_of_a_conditional(
    device float* x, uint lane [[thread_index_in_simdgroup]]) {
  x[lane] = lane % 2 == 0 ? simd_prefix_inclusive_sum(x[lane]) : 0.0f;
}

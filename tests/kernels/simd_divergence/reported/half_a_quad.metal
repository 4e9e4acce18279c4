// launch: threads=32 group_size=32
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void half_a_quad(device float* x, uint lane [[thread_index_in_simdgroup]]) {
  if (lane % 4 < 2) x[lane] = quad_sum(x[lane]);
}

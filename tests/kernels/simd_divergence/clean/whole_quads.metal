// launch: threads=32 group_size=32
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void whole_quads(device float* x, uint lane [[thread_index_in_simdgroup]]) {
  if (lane < 8) x[lane] = quad_sum(x[lane]);
}

// launch: threads=50 group_size=50
// args: ones:float32:50
#include <metal_stdlib>
using namespace metal;

kernel void ragged_simdgroup(device float* x, uint i [[thread_position_in_grid]]) {
  x[i] = simd_sum(x[i]);
}

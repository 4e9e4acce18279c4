// Lanes that have returned are not active, and the sum is that of the others.
// launch: threads=64 group_size=64
// args: ones:float32:50 50
#include <metal_stdlib>
using namespace metal;

kernel void guarded_lanes_return(
    device float* x, constant uint& count, uint i [[thread_position_in_grid]]) {
  if (i >= count) return;
  x[i] = simd_sum(x[i]);
}

// Every threadgroup takes part in every step; the barrier between the steps is its own.
// launch: threads=16x16 group_size=8x8
// args: ones:float32:16x16
#include <metal_stdlib>
using namespace metal;

kernel void matrix_step_by_step(device float* m, uint2 at [[thread_position_in_grid]]) {
  for (uint k = 0; k < 15; ++k) {
    if (at.y > k && at.x > k) {
      const float factor = m[at.y * 16 + k];
      const float pivot = m[k * 16 + at.x];
      m[at.y * 16 + at.x] -= factor * pivot;
    }
    threadgroup_barrier(mem_flags::mem_device);
  }
}

// launch: threads=32 group_size=32
// args: zeros:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void simdgroup_barrier_for_some_lanes(
    device float* x, uint lane [[thread_index_in_simdgroup]]) {
  if (lane < 8) {
    x[lane] = lane;
    simdgroup_barrier(mem_flags::mem_device);
  }
}

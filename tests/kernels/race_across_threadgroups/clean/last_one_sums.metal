// launch: threads=64 group_size=16
// args: ones:float32:64 zeros:float32:4 zeros:int32:1 zeros:float32:1
#include <metal_stdlib>
using namespace metal;

kernel void last_one_sums(
    device const float* x,
    device float* partial,
    device atomic_int* arrived,
    device float* out,
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]]) {
  const float sum = simd_sum(x[i]);
  if (lane == 0) {
    partial[group] = sum;
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    const int earlier = atomic_fetch_add_explicit(arrived, 1, memory_order_relaxed);
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    if (earlier == int(groups) - 1) {
      float total = 0.0f;
      for (uint k = 0; k < groups; ++k) total += partial[k];
      out[0] = total;
    }
  }
}

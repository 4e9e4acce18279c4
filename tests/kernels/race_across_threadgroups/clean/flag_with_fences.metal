// launch: threads=32 group_size=16
// args: zeros:float32:16 zeros:int32:1 zeros:float32:16
#include <metal_stdlib>
using namespace metal;

kernel void flag_with_fences(
    device float* data,
    device atomic_int* flag,
    device float* out,
    uint i [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  if (group == 0) {
    data[i] = i;
    threadgroup_barrier(mem_flags::mem_device);
    if (i == 0) {
      atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
      atomic_store_explicit(flag, 1, memory_order_relaxed);
    }
  } else {
    const int seen = atomic_load_explicit(flag, memory_order_relaxed);
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    if (seen == 1) out[i] = data[i];
  }
}

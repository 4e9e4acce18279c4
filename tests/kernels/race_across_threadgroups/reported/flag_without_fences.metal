// launch: threads=32 group_size=16
// args: zeros:float32:16 zeros:int32:1 zeros:float32:16
#include <metal_stdlib>
using namespace metal;

kernel void flag_without_fences(
    device float* data,
    device atomic_int* flag,
    device float* out,
    uint i [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  if (group == 0) {
    data[i] = i;
    threadgroup_barrier(mem_flags::mem_device);
    if (i == 0) atomic_store_explicit(flag, 1, memory_order_relaxed);
  } else if (atomic_load_explicit(flag, memory_order_relaxed) == 1) {
    out[i] = data[i];
  }
}

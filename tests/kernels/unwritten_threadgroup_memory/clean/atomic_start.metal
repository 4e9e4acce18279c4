// launch: threads=64 group_size=64
// args: zeros:int32:64
#include <metal_stdlib>
using namespace metal;

kernel void atomic_start(device int* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup atomic_int count;
  if (i == 0) atomic_store_explicit(&count, 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
}

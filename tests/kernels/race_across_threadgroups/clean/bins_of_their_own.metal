// launch: threads=64 group_size=16
// args: zeros:int32:16
#include <metal_stdlib>
using namespace metal;

kernel void bins_of_their_own(
    device int* bins,
    uint i [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup atomic_int local[4];
  if (i < 4) atomic_store_explicit(&local[i], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&local[i % 3], 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 4) bins[4 * group + i] = atomic_load_explicit(&local[i], memory_order_relaxed);
}

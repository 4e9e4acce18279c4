// launch: threads=128 group_size=128
// args: arange:int32:128 zeros:int32:8
#include <metal_stdlib>
using namespace metal;

kernel void atomic_histogram(
    device const int* x, device int* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup atomic_int bins[8];
  if (i < 8) atomic_store_explicit(&bins[i], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&bins[x[i] % 8], 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 8) out[i] = atomic_load_explicit(&bins[i], memory_order_relaxed);
}

// launch: threads=64 group_size=64
// args: zeros:int32:64
#include <metal_stdlib>
using namespace metal;

kernel void atomic_without_a_start(device int* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup atomic_int count;
  out[i] = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
}

// launch: threads=64 group_size=64
// args: zeros:int32:1 zeros:int32:64
#include <metal_stdlib>
using namespace metal;

kernel void atomic_and_plain(
    device atomic_int* count, device int* out, uint i [[thread_index_in_threadgroup]]) {
  atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
  out[i] = *(device int*)count;
}

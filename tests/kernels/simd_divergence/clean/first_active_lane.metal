// launch: threads=32 group_size=32
// args: arange:int32:32 zeros:int32:1
#include <metal_stdlib>
using namespace metal;

kernel void first_active_lane(
    device const int* x, device atomic_int* out, uint lane [[thread_index_in_simdgroup]]) {
  if (x[lane] % 3 == 1) {
    const int first = simd_broadcast_first(x[lane]);
    if (simd_is_first()) atomic_fetch_add_explicit(out, first, memory_order_relaxed);
  }
}

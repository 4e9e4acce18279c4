// launch: threads=128 group_size=32
// args: arange:int32:128 zeros:int32:1
#include <metal_stdlib>
using namespace metal;

kernel void atomic_maximum(
    device const int* x, device atomic_int* out, uint i [[thread_position_in_grid]]) {
  atomic_fetch_max_explicit(out, x[i], memory_order_relaxed);
}

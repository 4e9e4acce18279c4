// launch: threads=64 group_size=32
// args: zeros:int32:1 zeros:int32:64
#include <metal_stdlib>
using namespace metal;

kernel void atomic_read_plainly(
    device atomic_int* counter,
    device int* out,
    uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
  out[i] = *(device int*)counter;
}

// launch: threads=64 group_size=32
// args: zeros:int32:1
#include <metal_stdlib>
using namespace metal;

kernel void plain_reset(device atomic_int* count, uint i [[thread_position_in_grid]]) {
  if (i == 0) *(device int*)count = 0;
  if (i >= 32) atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

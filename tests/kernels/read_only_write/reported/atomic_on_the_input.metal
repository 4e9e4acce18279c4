// launch: threads=32 group_size=32
// args: zeros:int32:1
#include <metal_stdlib>
using namespace metal;

kernel void atomic_on_the_input(device const int* count, uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit((device atomic_int*)count, 1, memory_order_relaxed);
}

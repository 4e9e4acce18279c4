// launch: threads=64 group_size=64
// args: arange:int32:64 zeros:int32:16
#include <metal_stdlib>
using namespace metal;

kernel void histogram_bin(
    device const int* x, device atomic_int* bins, uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&bins[x[i] / 3], 1, memory_order_relaxed);
}

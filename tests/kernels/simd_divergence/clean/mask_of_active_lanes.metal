// launch: threads=32 group_size=32
// args: arange:int32:32
#include <metal_stdlib>
using namespace metal;

kernel void mask_of_active_lanes(device int* x, uint lane [[thread_index_in_simdgroup]]) {
  if (x[lane] > 7) {
    x[lane] = popcount(uint(simd_vote::vote_t(simd_active_threads_mask())));
  }
}

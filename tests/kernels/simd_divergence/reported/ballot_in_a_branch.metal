// launch: threads=32 group_size=32
// args: arange:int32:32
#include <metal_stdlib>
using namespace metal;

kernel void ballot_in_a_branch(device int* x, uint lane [[thread_index_in_simdgroup]]) {
  if (x[lane] >= 16) {
    x[lane] = int(simd_vote::vote_t(simd_ballot(x[lane] % 2 == 0)));
  }
}

// Lanes of one simdgroup, and no operation of it in between.
// launch: threads=32 group_size=32
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void lockstep(device float* x, uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float tile[32];
  tile[lane] = x[lane];
  x[lane] = tile[31 - lane];
}

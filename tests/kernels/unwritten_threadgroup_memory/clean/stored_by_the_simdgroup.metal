// launch: threads=32 group_size=32
// args: ones:float32:64 zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void stored_by_the_simdgroup(
    device const float* x, device float* out, uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float tile[64];
  simdgroup_float8x8 matrix;
  simdgroup_load(matrix, x, 8);
  simdgroup_store(matrix, tile, 8);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[lane] = tile[lane];
  out[lane + 32] = tile[lane + 32];
}

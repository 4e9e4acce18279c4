// launch: threads=32 group_size=32
// args: ones:float32:32 zeros:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void halo_left_out(
    device const float* x, device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[34];
  tile[i + 1] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = tile[i] + tile[i + 1] + tile[i + 2];
}

// Execution meets at the barrier, memory is not ordered.
// launch: threads=64 group_size=64
// args: ones:float32:64 zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void mem_none(
    device const float* x, device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  threadgroup_barrier(mem_flags::mem_none);
  out[i] = tile[63 - i];
}

// launch: threads=64 group_size=64
// args: ones:float32:50 50
#include <metal_stdlib>
using namespace metal;

kernel void guard_around_the_store(
    device float* x, constant uint& count, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = i < count ? x[i] : 0.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < count) x[i] = tile[63 - i];
}

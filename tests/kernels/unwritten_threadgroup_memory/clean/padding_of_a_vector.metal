// A float3 takes 16 bytes, and nobody writes the last four.
// launch: threads=32 group_size=32
// args: zeros:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void padding_of_a_vector(device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float3 tile[32];
  tile[i].x = i;
  tile[i].y = 1.0f;
  tile[i].z = 2.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float3 other = tile[31 - i];
  out[i] = other.x + other.y + other.z;
}

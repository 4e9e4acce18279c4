// The array that lies behind does not hide it.
// launch: threads=32 group_size=32
// args: zeros:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void second_threadgroup_array(device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float first[32];
  threadgroup float second[33];
  first[i] = i;
  second[i] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = first[i + 1] + second[i];
}

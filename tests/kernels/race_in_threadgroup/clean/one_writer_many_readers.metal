// launch: threads=64 group_size=64
// args: ones:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void one_writer_many_readers(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float scale;
  if (i == 0) scale = 3.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] *= scale;
}

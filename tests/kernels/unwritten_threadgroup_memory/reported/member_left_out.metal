// launch: threads=32 group_size=32
// args: zeros:float32:32
#include <metal_stdlib>
using namespace metal;

struct MeanAndSpread {
  float mean;
  float spread;
};
kernel void member_left_out(device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup MeanAndSpread row;
  if (i == 0) row.mean = 1.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = row.mean / row.spread;
}

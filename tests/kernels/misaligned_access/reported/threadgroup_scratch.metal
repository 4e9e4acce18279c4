// launch: threads=4 group_size=4
// args: zeros:float32:4
#include <metal_stdlib>
using namespace metal;

kernel void threadgroup_scratch(device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float scratch[32];
  for (uint k = 0; k < 8; ++k) scratch[8 * i + k] = k;
  threadgroup const float2& pair = *(threadgroup const float2*)(scratch + 8 * i + 1);
  out[i] = pair.x + pair.y;
}

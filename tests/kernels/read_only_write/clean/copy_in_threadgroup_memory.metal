// launch: threads=32 group_size=32
// args: ones:float32:32 zeros:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void copy_in_threadgroup_memory(
    device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  threadgroup float tile[32];
  tile[i] = x[i];
  tile[i] *= 2.0f;
  out[i] = tile[i];
}

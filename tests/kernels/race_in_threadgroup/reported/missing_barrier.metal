// launch: threads=256 group_size=256
// args: ones:float32:256 zeros:float32:256
#include <metal_stdlib>
using namespace metal;

kernel void missing_barrier(
    device const float* x, device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[256];
  tile[i] = x[i];
  out[i] = tile[i / 2];
}

// launch: threads=32 group_size=32
// args: zeros:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void never_written(device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float tile[32];
  out[i] = tile[i];
}

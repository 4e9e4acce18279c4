// launch: threads=64 group_size=64
// args: ones:float32:64 zeros:int32:1
#include <metal_stdlib>
using namespace metal;

kernel void same_value(
    device const float* x, device int* found, uint i [[thread_index_in_threadgroup]]) {
  if (x[i] > 0.0f) found[0] = 1;
}

// launch: threads=64 group_size=64
// args: zeros:float32:256
#include <metal_stdlib>
using namespace metal;

kernel void vectors_overlap(device float* x, uint i [[thread_index_in_threadgroup]]) {
  device packed_float4* four = (device packed_float4*)(x + 3 * i);
  *four = packed_float4(float(i));
}

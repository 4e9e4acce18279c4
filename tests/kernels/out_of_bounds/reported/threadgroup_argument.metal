// launch: threads=32 group_size=32 threadgroup=64
// args: zeros:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void threadgroup_argument(
    device float* out,
    threadgroup float* scratch [[threadgroup(0)]],
    uint i [[thread_index_in_threadgroup]]) {
  scratch[i] = i;
  out[i] = scratch[i];
}

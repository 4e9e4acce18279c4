// launch: threads=128 group_size=32
// args: zeros:float32:128
#include <metal_stdlib>
using namespace metal;

kernel void tiles_overlap(
    device float* out,
    uint i [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  out[group * 31 + i] = i;
}

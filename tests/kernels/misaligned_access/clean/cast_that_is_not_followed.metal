// launch: threads=8 group_size=8
// args: ones:float32:64 zeros:float32:8 1
#include <metal_stdlib>
using namespace metal;

kernel void cast_that_is_not_followed(
    device const float* x,
    device float* out,
    constant uint& offset,
    uint i [[thread_position_in_grid]]) {
  device const float* row = x + offset + 4 * i;
  device const float4* vectors = (device const float4*)row;
  const bool aligned = ulong(vectors) % 16 == 0;
  if (aligned) {
    const float4 v = *vectors;
    out[i] = v.x + v.y + v.z + v.w;
  } else {
    out[i] = row[0] + row[1] + row[2] + row[3];
  }
}

// launch: threads=4 group_size=4
// args: ones:float32:4x30 zeros:float32:4 30
#include <metal_stdlib>
using namespace metal;

kernel void scalar_head(
    device const float* x,
    device float* out,
    constant uint& columns,
    uint row [[thread_position_in_grid]]) {
  const uint head = (4 - row * columns % 4) % 4;
  device const float* from = x + row * columns;
  float sum = 0.0f;
  for (uint k = 0; k < head; ++k) sum += from[k];
  device const float4* vectors = (device const float4*)(from + head);
  const uint count = (columns - head) / 4;
  for (uint k = 0; k < count; ++k) sum += dot(vectors[k], float4(1.0f));
  for (uint k = head + 4 * count; k < columns; ++k) sum += from[k];
  out[row] = sum;
}

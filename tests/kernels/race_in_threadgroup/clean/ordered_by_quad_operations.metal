// launch: threads=8 group_size=8
// args: zeros:float32:8
#include <metal_stdlib>
using namespace metal;

kernel void ordered_by_quad_operations(
    device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float cells[8];
  cells[i] = i;
  const float sum = quad_sum(float(i));
  x[i] = cells[i ^ 1] + sum;
}

// Lane 1 meets lane 0 first and lane 2 then: what lane 0 wrote is known to lane 2.
// launch: threads=3 group_size=3
// args: zeros:float32:3
#include <metal_stdlib>
using namespace metal;

kernel void ordered_by_two_partial_operations(
    device float* out, uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float cell;
  if (lane == 0) cell = 1.0f;
  if (lane < 2) {
    out[lane] = simd_broadcast_first(float(lane));
  }
  if (lane > 0) {
    const float first = simd_broadcast_first(float(lane));
    if (lane == 2) out[lane] = cell + first;
  }
}

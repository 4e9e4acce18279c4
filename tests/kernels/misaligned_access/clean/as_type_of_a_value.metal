// launch: threads=4 group_size=4
// args: ones:float32:32 zeros:int32:4
#include <metal_stdlib>
using namespace metal;

kernel void as_type_of_a_value(
    device const float* x, device int* out, uint i [[thread_position_in_grid]]) {
  const float2 pair(x[2 * i + 1], x[2 * i + 2]);
  out[i] = as_type<int2>(pair).y;
}

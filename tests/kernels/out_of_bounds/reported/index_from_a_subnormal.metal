// Subnormals are kept: the quotient is 1.
// launch: threads=4 group_size=4
// args: ones:float32:8 0x200000 zeros:float32:4
#include <metal_stdlib>
using namespace metal;

kernel void index_from_a_subnormal(
    device const float* x,
    constant uint& bits,
    device float* out,
    uint i [[thread_position_in_grid]]) {
  const float subnormal = as_type<float>(bits);
  const uint at = uint(8.0f * subnormal / 0x1p-128f);
  out[i] = x[at + i];
}

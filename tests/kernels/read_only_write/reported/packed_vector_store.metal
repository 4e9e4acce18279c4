// launch: threads=4 group_size=4
// args: zeros:float32:12
#include <metal_stdlib>
using namespace metal;

kernel void packed_vector_store(
    device const float* x, uint i [[thread_position_in_grid]]) {
  ((device packed_float3*)x)[i] = packed_float3(0.0f);
}

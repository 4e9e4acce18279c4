// launch: threads=8 group_size=8
// args: zeros:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void vector_store(device const float4* x, uint i [[thread_position_in_grid]]) {
  ((device float4*)x)[i] = float4(1.0f);
}

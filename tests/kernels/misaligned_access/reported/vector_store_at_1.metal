// launch: threads=4 group_size=4
// args: ones:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void vector_store_at_1(device float* x, uint i [[thread_position_in_grid]]) {
  *(device float4*)(x + 1 + 4 * i) = float4(float(i));
}

// launch: threads=4 group_size=4
// args: ones:float32:4
#include <metal_stdlib>
using namespace metal;

kernel void compound_assignment(
    device const float* x, uint i [[thread_position_in_grid]]) {
  device float& own = const_cast<device float&>(x[i]);
  own *= 2.0f;
}

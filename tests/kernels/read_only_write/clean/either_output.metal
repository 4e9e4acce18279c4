// launch: threads=32 group_size=32
// args: zeros:float32:32 zeros:float32:32
#include <metal_stdlib>
using namespace metal;

kernel void either_output(
    device float* even, device float* odd, uint i [[thread_position_in_grid]]) {
  device float* out = i % 2 == 0 ? even : odd;
  out[i] = i;
}

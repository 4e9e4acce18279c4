// launch: threads=64 group_size=32
// args: ones:float32:64 zeros:float32:64 64
#include <metal_stdlib>
using namespace metal;

kernel void halo_of_the_input(
    device float* x,
    device float* out,
    constant uint& count,
    uint i [[thread_position_in_grid]]) {
  out[i] = x[i] + (i + 1 < count ? x[i + 1] : 0.0f);
}

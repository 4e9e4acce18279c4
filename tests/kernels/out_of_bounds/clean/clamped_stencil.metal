// launch: threads=64 group_size=32
// args: ones:float32:64 zeros:float32:64 64
#include <metal_stdlib>
using namespace metal;

kernel void clamped_stencil(
    device const float* x,
    device float* out,
    constant int& count,
    uint i [[thread_position_in_grid]]) {
  const int left = max(int(i) - 1, 0);
  const int right = min(int(i) + 1, count - 1);
  out[i] = x[left] + x[i] + x[right];
}

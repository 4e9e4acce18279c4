// launch: threads=32 group_size=32
// args: ones:float32:32 zeros:float32:32
#include <metal_stdlib>
using namespace metal;

inline void scale_in_place(device float* x, uint i) {
  x[i] *= 2.0f;
}
kernel void scales_its_input(
    device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  scale_in_place((device float*)x, i);
  out[i] = x[i];
}

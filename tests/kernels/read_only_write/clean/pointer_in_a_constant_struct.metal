// launch: threads=4 group_size=4
// args: (zeros:float32:4;2.0)
#include <metal_stdlib>
using namespace metal;

struct Scale {
  device float* out;
  float factor;
};

kernel void pointer_in_a_constant_struct(
    constant Scale& scale, uint i [[thread_position_in_grid]]) {
  scale.out[i] = i * scale.factor;
}

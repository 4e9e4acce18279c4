// launch: threads=4 group_size=4
// args: (zeros:float32:4;zeros:float32:3;zeros:float32:4)
#include <metal_stdlib>
using namespace metal;

struct Tensors {
  array<device float*, 3> at;
};

kernel void one_of_many_tensors(
    constant Tensors& tensors, uint i [[thread_position_in_grid]]) {
  for (uint k = 0; k < 3; ++k) tensors.at[k][i] += 1.0f;
}

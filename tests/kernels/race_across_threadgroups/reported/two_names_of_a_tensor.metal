// launch: threads=64 group_size=16
// args: (zeros:float32:64;zeros:float32:1)
#include <metal_stdlib>
using namespace metal;

struct Outputs {
  device float* all;
  device float* last;
};

kernel void two_names_of_a_tensor(
    constant Outputs& out, uint i [[thread_position_in_grid]]) {
  out.all[i] = i;
  if (i % 16 == 15) *out.last = i;
}

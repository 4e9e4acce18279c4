// launch: threads=8 group_size=8
// args: (zeros:float32:8;arange:float32:6;8)
#include <metal_stdlib>
using namespace metal;

struct Args {
  device float* out;
  device const float* in;
  uint count;
};

kernel void pointer_in_a_struct(
    constant Args& args, uint i [[thread_position_in_grid]]) {
  if (i < args.count) args.out[i] = args.in[i];
}

// launch: threads=8 group_size=8
// args: (zeros:float32:8;arange:float32:6;6)
#include <metal_stdlib>
using namespace metal;

struct GuardedArgs {
  device float* out;
  device const float* in;
  uint count;
};

kernel void pointer_in_a_struct_guarded(
    constant GuardedArgs& args, uint i [[thread_position_in_grid]]) {
  args.out[i] = i < args.count ? args.in[i] : 0.0f;
}

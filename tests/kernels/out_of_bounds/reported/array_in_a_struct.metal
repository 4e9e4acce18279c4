// launch: threads=5 group_size=5
// args: zeros:int32:5 1,2,3,4,5,6,7,8
#include <metal_stdlib>
using namespace metal;

struct Strides {
  int input[4];
  int output[4];
};

kernel void array_in_a_struct(
    device int* x, constant Strides& strides, uint i [[thread_position_in_grid]]) {
  x[i] = strides.input[i];
}

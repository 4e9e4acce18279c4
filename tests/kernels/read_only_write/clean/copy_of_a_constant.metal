// launch: threads=32 group_size=32
// args: zeros:int32:32 7
#include <metal_stdlib>
using namespace metal;

kernel void copy_of_a_constant(
    device int* out, constant int& start, uint i [[thread_position_in_grid]]) {
  int value = start;
  value += i;
  out[i] = value;
}

// launch: threads=1 group_size=1
// args: zeros:int32:1
#include <metal_stdlib>
using namespace metal;

kernel void through_a_reference(device const int& total, uint i [[thread_position_in_grid]]) {
  *(device int*)&total = 3;
}

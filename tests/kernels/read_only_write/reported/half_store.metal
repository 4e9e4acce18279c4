// launch: threads=32 group_size=32
// args: zeros:float16:32
#include <metal_stdlib>
using namespace metal;

kernel void half_store(device const half* x, uint i [[thread_position_in_grid]]) {
  if (i == 31) ((device half*)x)[i] = 1.0h;
}

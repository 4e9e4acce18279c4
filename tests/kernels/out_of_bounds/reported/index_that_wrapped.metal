// launch: threads=3 group_size=3
// args: zeros:float32:16 0x40000000
#include <metal_stdlib>
using namespace metal;

kernel void index_that_wrapped(
    device float* x, constant uint& pitch, uint row [[thread_position_in_grid]]) {
  const int offset = int(row * pitch);
  x[offset / 0x08000000] = row;
}

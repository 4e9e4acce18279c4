// launch: threads=8 group_size=8
// args: ones:uint8:33 zeros:float32:8
#include <metal_stdlib>
using namespace metal;

kernel void bytes_of_a_row(
    device const uchar* x, device float* out, uint i [[thread_position_in_grid]]) {
  const uchar4 four = ((device const uchar4*)x)[i];
  out[i] = four.x + float(x[i + 25]);
}

// launch: threads=1 group_size=1
// args: zeros:float32:1 7
#include <metal_stdlib>
using namespace metal;

kernel void byte_of_a_constant(device float* out, constant uint& settings) {
  device uchar* bytes = (device uchar*)(ulong)(&settings);
  out[0] = bytes[0];
  bytes[0] = 1;
}

// launch: threads=64 group_size=64
// args: ones:float16:65
#include <metal_stdlib>
using namespace metal;

kernel void half_neighbours(device half* x, uint i [[thread_index_in_threadgroup]]) {
  x[i] = x[i] + x[i + 1];
}

// launch: threads=64 group_size=64
// args: zeros:float16:64
#include <metal_stdlib>
using namespace metal;

kernel void neighbouring_halves(device half* x, uint i [[thread_index_in_threadgroup]]) {
  x[i] = half(i);
  x[i] += 1.0h;
}

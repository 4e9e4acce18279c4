// launch: threads=2 group_size=2
// args: ones:float32:32 zeros:float32:2
#include <metal_stdlib>
using namespace metal;

struct Box {
  float4 low, high;
};

kernel void struct_of_vectors(
    device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  const Box box = *(device const Box*)(x + 1 + 8 * i);
  out[i] = box.high.x - box.low.x;
}

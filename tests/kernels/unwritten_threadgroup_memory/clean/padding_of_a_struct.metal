// launch: threads=32 group_size=32
// args: zeros:float32:32
#include <metal_stdlib>
using namespace metal;

struct PaddedPair {
  uchar kind;
  float value;
};
kernel void padding_of_a_struct(device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup PaddedPair pairs[32];
  pairs[i].kind = uchar(i);
  pairs[i].value = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const PaddedPair other = pairs[31 - i];
  out[i] = other.value + other.kind;
}

// launch: threads=32 group_size=32
// args: arange:int32:32
#include <metal_stdlib>
using namespace metal;

kernel void shuffle_where_positive(device int* x, uint lane [[thread_index_in_simdgroup]]) {
  int value = x[lane];
  if (value > 3) value = simd_shuffle_xor(value, 1);
  x[lane] = value;
}

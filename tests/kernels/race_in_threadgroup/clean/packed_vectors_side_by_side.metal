// launch: threads=64 group_size=64
// args: zeros:float32:192
#include <metal_stdlib>
using namespace metal;

kernel void packed_vectors_side_by_side(
    device packed_float3* x, uint i [[thread_index_in_threadgroup]]) {
  x[i] = packed_float3(i, i + 1.0f, i + 2.0f);
}

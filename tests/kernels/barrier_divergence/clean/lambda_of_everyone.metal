// launch: threads=64 group_size=64
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void lambda_of_everyone(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float cells[64];
  const auto exchange = [&](float value, uint other) {
    cells[i] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float result = cells[other];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return result;
  };
  x[i] = exchange(i, 63 - i) + exchange(2 * i, i ^ 1);
}

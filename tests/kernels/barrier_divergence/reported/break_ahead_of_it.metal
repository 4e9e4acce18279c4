// launch: threads=64 group_size=64
// args: arange:int32:64 6
#include <metal_stdlib>
using namespace metal;

kernel void break_ahead_of_it(
    device int* x, constant int& rounds, uint i [[thread_index_in_threadgroup]]) {
  for (int k = 0; k < rounds; ++k) {
    if (x[i] > 40 + k) break;
    threadgroup_barrier(mem_flags::mem_device);
    x[i] += 1;
  }
}

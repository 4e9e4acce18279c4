// PyTorch's reductions let the first lanes combine what the simdgroups left.
// launch: threads=128 group_size=128
// args: ones:float32:128
#include <c10/metal/reduction_utils.h>
#include <metal_stdlib>
using namespace metal;

kernel void threadgroup_sum_of_c10(
    device float* x,
    uint i [[thread_index_in_threadgroup]],
    uint size [[threads_per_threadgroup]]) {
  threadgroup float partial[32];
  x[i] = c10::metal::threadgroup_sum(partial, x[i], i, size);
}

// launch: threads=64 group_size=64
// args: zeros:float32:64
#include <metal_stdlib>
using namespace metal;

kernel void fence_is_no_barrier(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float cells[64];
  cells[i] = i;
  atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst, thread_scope_threadgroup);
  x[i] = cells[63 - i];
}

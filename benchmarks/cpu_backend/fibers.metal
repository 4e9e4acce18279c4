// What a thread costs: one that does nothing, one that meets its simdgroup, one that meets its
// threadgroup. Each says where its stack lies, which tells how many stacks there were.
#include <metal_stdlib>
using namespace metal;

inline ulong stack_address() {
  volatile int local = 0;
  return ulong(&local);
}

kernel void alone(device ulong* stacks, uint i [[thread_position_in_grid]]) {
  stacks[i] = stack_address();
}

kernel void with_its_simdgroup(device ulong* stacks, uint i [[thread_position_in_grid]]) {
  stacks[i] = stack_address() + simd_min(i) - simd_min(i);
}

kernel void with_its_threadgroup(device ulong* stacks, uint i [[thread_position_in_grid]]) {
  threadgroup_barrier(mem_flags::mem_none);
  stacks[i] = stack_address();
}

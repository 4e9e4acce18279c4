// Counts in threadgroup memory first, so that threadgroups meet at the device's counters only once.
#include <metal_atomic>
#include <metal_stdlib>

using namespace metal;

constant constexpr uint MAX_BINS = 256;

kernel void histogram(
    device const float* values [[buffer(0)]],
    device atomic_uint* counts [[buffer(1)]],
    constant uint& size [[buffer(2)]],
    constant uint& bins [[buffer(3)]],
    constant float2& range [[buffer(4)]],
    uint tid [[thread_position_in_grid]],
    uint lid [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint grid [[threads_per_grid]]) {
  threadgroup atomic_uint local[MAX_BINS];
  for (uint bin = lid; bin < bins; bin += threads) {
    atomic_store_explicit(&local[bin], 0u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float scale = bins / (range.y - range.x);
  for (uint i = tid; i < size; i += grid) {
    const float value = values[i];
    if (value >= range.x && value <= range.y) {
      const uint bin = min(uint((value - range.x) * scale), bins - 1);
      atomic_fetch_add_explicit(&local[bin], 1u, memory_order_relaxed);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint bin = lid; bin < bins; bin += threads) {
    const uint count = atomic_load_explicit(&local[bin], memory_order_relaxed);
    if (count != 0) {
      atomic_fetch_add_explicit(counts + bin, count, memory_order_relaxed);
    }
  }
}

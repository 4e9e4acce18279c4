// Inclusive sums along rows, a threadgroup for each, carried from one stretch to the next.
#include <metal_stdlib>

using namespace metal;

template <typename T>
[[kernel, max_total_threads_per_threadgroup(1024)]] void cumsum(
    device const T* in,
    device T* out,
    constant uint& row_size,
    uint row [[threadgroup_position_in_grid]],
    uint lid [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup float sums[32];
  const ulong base = static_cast<ulong>(row) * row_size;
  float carry = 0;
  for (uint start = 0; start < row_size; start += threads) {
    const uint at = start + lid;
    const float value = at < row_size ? float(in[base + at]) : 0.0f;
    const float prefix = simd_prefix_inclusive_sum(value);
    if (lane == 31) {
      sums[simdgroup] = prefix;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float sum = lane < simdgroups ? sums[lane] : 0.0f;
    const float before = simd_prefix_exclusive_sum(sum);
    const float own = simd_shuffle(before, ushort(simdgroup));
    if (at < row_size) {
      out[base + at] = static_cast<T>(carry + own + prefix);
    }
    carry += simd_sum(sum);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

template [[host_name("cumsum_float")]] [[kernel]] decltype(cumsum<float>) cumsum<float>;
template [[host_name("cumsum_half")]] [[kernel]] decltype(cumsum<half>) cumsum<half>;

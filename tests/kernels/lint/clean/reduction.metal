// Sum and maximum of each row, a threadgroup for each: simdgroups first, then one of them.
#include <metal_simdgroup>
#include <metal_stdlib>

using namespace metal;

constant constexpr uint SIMD_SIZE = 32;
constant constexpr uint N_READS = 4;

template <typename U>
struct Sum {
  static constexpr constant U init = U(0);
  U operator()(U a, U b) {
    return a + b;
  }
  U simd_reduce(U value) {
    return simd_sum(value);
  }
};

template <typename U>
struct Max {
  static constexpr constant U init = metal::numeric_limits<U>::lowest();
  U operator()(U a, U b) {
    return a > b ? a : b;
  }
  U simd_reduce(U value) {
    return simd_max(value);
  }
};

template <typename T, typename U, typename Op>
[[kernel]] void row_reduce(
    const device T* in [[buffer(0)]],
    device U* out [[buffer(1)]],
    const constant size_t& row_size [[buffer(2)]],
    uint3 gid [[threadgroup_position_in_grid]],
    uint3 lid [[thread_position_in_threadgroup]],
    uint3 lsize [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup U partial[SIMD_SIZE];
  Op op;
  U total = Op::init;
  in += gid.x * row_size;
  for (size_t r = lid.x * N_READS; r < row_size; r += lsize.x * N_READS) {
    for (uint i = 0; i < N_READS && r + i < row_size; i++) {
      total = op(total, static_cast<U>(in[r + i]));
    }
  }
  total = op.simd_reduce(total);
  if (simdgroups > 1) {
    if (lane == 0) {
      partial[simdgroup] = total;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    total = lid.x < simdgroups ? partial[lid.x] : Op::init;
    total = op.simd_reduce(total);
  }
  if (lid.x == 0) {
    out[gid.x] = total;
  }
}

#define instantiate_reduce(name, itype, otype, op)                  \
  template [[host_name("row_reduce_" #name "_" #itype)]] [[kernel]] \
  decltype(row_reduce<itype, otype, op<otype>>) row_reduce<itype, otype, op<otype>>;

instantiate_reduce(sum, float, float, Sum)
instantiate_reduce(sum, half, float, Sum)
instantiate_reduce(max, float, float, Max)
instantiate_reduce(sum, int, int, Sum)

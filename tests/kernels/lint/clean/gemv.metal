// A matrix times a vector: TM rows for each simdgroup, TN columns for each lane at a time.
#include <metal_simdgroup>
#include <metal_stdlib>

using namespace metal;

#define CLASS_CONSTANT static constant constexpr const
#define UNROLL _Pragma("clang loop unroll(full)")

template <typename T, const int BM, const int TM, const int TN, typename AccT = float>
struct RowBlock {
  CLASS_CONSTANT int WIDTH = 32;
  CLASS_CONSTANT int ROWS = BM * TM;

  static METAL_FUNC void load_padded(
      const device T* src, thread AccT dst[TN], const int offset, const int size) {
    UNROLL
    for (int c = 0; c < TN; c++) {
      dst[c] = offset + c < size ? static_cast<AccT>(src[offset + c]) : AccT(0);
    }
  }

  static METAL_FUNC void run(
      const device T* matrix,
      const device T* vector,
      device T* out,
      const constant int& columns,
      const constant int& rows,
      uint group,
      uint simdgroup,
      uint lane) {
    thread AccT sums[TM] = {0};
    thread AccT chunk[TN];
    thread AccT line[TN];
    const int first = int(group) * ROWS + int(simdgroup) * TM;
    for (int at = int(lane) * TN; at < columns; at += WIDTH * TN) {
      load_padded(vector, chunk, at, columns);
      UNROLL
      for (int r = 0; r < TM; r++) {
        if (first + r < rows) {
          load_padded(matrix + (first + r) * columns, line, at, columns);
          for (int c = 0; c < TN; c++) {
            sums[r] += line[c] * chunk[c];
          }
        }
      }
    }
    UNROLL
    for (int r = 0; r < TM; r++) {
      for (ushort delta = WIDTH / 2; delta >= 1; delta >>= 1) {
        sums[r] += simd_shuffle_down(sums[r], delta);
      }
    }
    if (lane == 0) {
      for (int r = 0; r < TM && first + r < rows; r++) {
        out[first + r] = static_cast<T>(sums[r]);
      }
    }
  }
};

template <typename T, const int BM, const int TM, const int TN>
[[kernel, max_total_threads_per_threadgroup(BM * 32)]] void gemv(
    const device T* matrix [[buffer(0)]],
    const device T* vector [[buffer(1)]],
    device T* out [[buffer(2)]],
    const constant int& columns [[buffer(3)]],
    const constant int& rows [[buffer(4)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  using Block = RowBlock<T, BM, TM, TN>;
  Block::run(
      matrix, vector, out, columns, rows, group.x, simdgroup, lane);
}

#define instantiate_gemv(name, itype, bm, tm, tn)                                     \
  template [[host_name("gemv_" #name "_bm" #bm "_tm" #tm "_tn" #tn)]] [[kernel]] void \
  gemv<itype, bm, tm, tn>(                                                            \
      const device itype* matrix [[buffer(0)]],                                       \
      const device itype* vector [[buffer(1)]],                                       \
      device itype* out [[buffer(2)]],                                                \
      const constant int& columns [[buffer(3)]],                                      \
      const constant int& rows [[buffer(4)]],                                         \
      uint3 group [[threadgroup_position_in_grid]],                                   \
      uint simdgroup [[simdgroup_index_in_threadgroup]],                              \
      uint lane [[thread_index_in_simdgroup]]);

// clang-format off
instantiate_gemv(float32, float, 4, 4, 4)
instantiate_gemv(float16, half, 2, 1, 2) // clang-format on

#pragma once

#include <c10/metal/common.h>

// A "row" is one line of elements along the reduced dimension, whatever its
// strides. Rows are numbered over all other dimensions, innermost first.

// No threadgroup of these kernels is larger: Metal's own limit.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_MAX_THREADS = 1024;
// Elements of a row that a thread of log_softmax_row keeps in registers: with
// 1024 threads 64 KB, under a third of an Apple GPU core's register file.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_ROW_VALUES = 16;
// Elements that a thread of the looping kernels takes at a time: one rescaling
// of the running sum for each.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_LOOP_VALUES = 4;

// The maximum of some values, and the sum of exp(value - maximum) over them.
struct LogSumExp {
  float maximum;
  float sum;
};

// Strides and sizes are in elements. A split row consists of `chunks` chunks of
// `chunk_size` elements, the last one possibly shorter.
template <typename idx_t, unsigned N = c10::metal::max_ndim>
struct LogSoftmaxParams {
  ::c10::metal::array<idx_t, N> row_sizes;
  ::c10::metal::array<idx_t, N> row_input_strides;
  ::c10::metal::array<idx_t, N> row_output_strides;
  idx_t rows;
  idx_t dim_size;
  idx_t dim_input_stride;
  idx_t dim_output_stride;
  idx_t chunk_size;
  idx_t chunks;
  unsigned row_ndim;
};

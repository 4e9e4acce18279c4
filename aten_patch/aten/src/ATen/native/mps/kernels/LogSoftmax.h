#pragma once

#include <c10/metal/common.h>

// A "row" is one line of elements along the reduced dimension, whatever its
// strides. Rows are numbered over all other dimensions, innermost first. A
// "unit" is what a thread loads at a time: a vector of 16 bytes, or one value
// where memory does not lie that way.

// The most that a thread of an Apple GPU loads at once.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_VECTOR_BYTES = 16;
// No threadgroup of these kernels is larger: Metal's own limit.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_MAX_THREADS = 1024;
// Vectors that a thread of log_softmax_row keeps in registers: 16 of them, so
// that many threads fit on a core to hide each other's latency.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_ROW_VECTORS = 4;
// The same of log_softmax_long_row: as many as leave an Apple GPU core, with
// its 208 KB of registers, 20 of 52 for the rest of the state of 1024 threads.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_LONG_ROW_VECTORS = 8;
// The same of log_softmax, whose threads have several rows to combine: the more
// values, the fewer times. 64 registers of the 104 that 512 threads have.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_COLUMN_VECTORS = 16;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_COLUMN_THREADS = 512;
// The same of the other kernels.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_CHUNK_VECTORS = 4;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_TRANSPOSE_VECTORS = 8;
// Single values that take the place of a vector in registers: half as many as a
// float vector has, since each needs an address and a bounds check of its own.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_SCALARS_PER_VECTOR = 2;
// Neighbouring rows that a threadgroup of log_softmax takes at most: a
// LogSumExp of each for all of its simdgroups is 8 KB of threadgroup memory.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_MAX_COLUMNS = 64;
// The most threads of log_softmax_transpose, whose threadgroup memory holds a
// unit of each: 8 KB.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_TRANSPOSE_THREADS = 512;

// The maximum of some values, and the sum of exp(value - maximum) over them.
struct LogSumExp {
  float maximum;
  float sum;
};

// The tensors of log_softmax, in the order of their strides in its parameters.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_INPUT = 0;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_OUTPUT = 1;

// Strides and sizes are in elements, strides by tensor.
template <typename idx_t, unsigned TENSORS>
struct LogSoftmaxRowDim {
  idx_t size;
  ::c10::metal::array<idx_t, TENSORS> strides;
};

// A split row consists of `chunks` chunks of `chunk_size` elements, the last
// one possibly shorter.
template <
    typename idx_t,
    unsigned TENSORS = 2,
    unsigned N = c10::metal::max_ndim>
struct LogSoftmaxParams {
  idx_t rows;
  idx_t dim_size;
  ::c10::metal::array<idx_t, TENSORS> dim_strides;
  idx_t chunk_size;
  idx_t chunks;
  unsigned row_ndim;
  unsigned vectors; // whether units are vectors
  ::c10::metal::array<LogSoftmaxRowDim<idx_t, TENSORS>, N> row_dims;
};

#pragma once

#include <ATen/native/mps/kernels/LogSoftmax.h>

// The tensors of log_softmax's backward, in the order of their strides in its
// parameters.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_OUTPUT = 0;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_GRAD = 1;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_GRAD_INPUT = 2;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_TENSORS = 3;

// Vectors of grad that a thread of log_softmax_backward_row keeps in registers,
// and of output that it loads at a time: 32 of the 52 registers that an Apple
// GPU core, with its 208 KB of them, has for each of 1024 threads.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_ROW_VECTORS = 4;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_ROW_OUTPUTS = 4;
// The same of log_softmax_backward_long_row: what else a thread needs counts
// for less the more it holds. 64 of the 104 registers that 512 threads have, in
// threadgroups of half as many: one reads while another writes.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_LONG_ROW_VECTORS = 12;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_LONG_ROW_OUTPUTS = 4;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_LONG_ROW_THREADS = 256;
// The same of log_softmax_backward, whose threads have several rows to add up:
// the more values, the fewer times. 64 of 104 registers.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_COLUMN_VECTORS = 8;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_COLUMN_OUTPUTS = 8;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_COLUMN_THREADS = 512;
// The same of the other kernels.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_CHUNK_VECTORS = 4;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_CHUNK_OUTPUTS = 4;

template <typename idx_t>
using LogSoftmaxBackwardParams =
    LogSoftmaxParams<idx_t, LOG_SOFTMAX_BACKWARD_TENSORS>;

#pragma once

#include <ATen/native/mps/kernels/LogSoftmax.h>

// The tensors of log_softmax's backward, in the order of their strides in its
// parameters.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_OUTPUT = 0;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_GRAD = 1;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_GRAD_INPUT = 2;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_TENSORS = 3;

// Vectors that a thread keeps in registers of both grad and output: half as
// many as log_softmax_long_row and log_softmax keep of their one input.
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_ROW_VECTORS = 4;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_CHUNK_VECTORS = 4;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_COLUMN_VECTORS = 8;
C10_METAL_CONSTEXPR unsigned LOG_SOFTMAX_BACKWARD_COLUMN_THREADS = 512;

template <typename idx_t>
using LogSoftmaxBackwardParams =
    LogSoftmaxParams<idx_t, LOG_SOFTMAX_BACKWARD_TENSORS>;

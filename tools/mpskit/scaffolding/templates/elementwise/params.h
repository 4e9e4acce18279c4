#pragma once

#include <c10/metal/common.h>

// Sizes and strides are in elements, the innermost dimension of the output
// first.
template <typename idx_t, unsigned N = c10::metal::max_ndim>
struct ${Name}Params {
  ::c10::metal::array<idx_t, N> sizes;
  ::c10::metal::array<idx_t, N> input_strides;
  ::c10::metal::array<idx_t, N> output_strides;
  idx_t numel;
  unsigned ndim;
};

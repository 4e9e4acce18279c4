#pragma once

#include <c10/metal/common.h>

// A "row" is all that is reduced to one element of the output. Sizes and
// strides are in elements, the innermost dimension of the input first.
template <typename idx_t, unsigned N = c10::metal::max_ndim>
struct ${Name}Params {
  ::c10::metal::array<idx_t, N> row_sizes;
  ::c10::metal::array<idx_t, N> row_input_strides;
  ::c10::metal::array<idx_t, N> row_output_strides;
  ::c10::metal::array<idx_t, N> reduced_sizes;
  ::c10::metal::array<idx_t, N> reduced_strides;
  idx_t rows;
  idx_t size; // elements of a row
  unsigned row_ndim;
  unsigned reduced_ndim;
};

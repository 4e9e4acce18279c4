#pragma once

#include <c10/metal/common.h>

// The most threads that take a row together.
C10_METAL_CONSTEXPR unsigned ${NAME}_MAX_THREADS = 1024;

// A "row" is one line of elements along the reduced dimension. Sizes and strides
// are in elements; strides are by argument of the kernel. Rows are numbered over
// all other dimensions, the innermost first.
template <typename idx_t, unsigned ARGUMENTS, unsigned N = c10::metal::max_ndim>
struct ${Name}Params {
  ::c10::metal::array<idx_t, N> row_sizes;
  ::c10::metal::array<::c10::metal::array<idx_t, N>, ARGUMENTS> row_strides;
  ::c10::metal::array<idx_t, ARGUMENTS> strides; // from element to element
  idx_t rows;
  idx_t size; // elements of a row
  unsigned row_ndim;
};

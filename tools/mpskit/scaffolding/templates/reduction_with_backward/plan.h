#pragma once

// Decides how ${name} and its backward run: on what grid, with what parameters.
// Plain C++ without ATen or Metal, so that it can be compiled and tested on its
// own.

#include <ATen/native/mps/kernels/${Name}.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace at::native::mps::${name} {

// Threadgroups on one side of a grid, which Metal counts with 32 bits.
constexpr uint64_t kMaxGrid = uint64_t{1} << 31;

// What takes a row. A kernel for short rows, or for rows that lie side by side,
// would be the next.
enum class Kernel : uint32_t { Threadgroup };

template <size_t ARGUMENTS>
struct Dim {
  uint64_t size;
  std::array<uint64_t, ARGUMENTS> strides; // in elements
};

// The reduced dimension, and those that number the rows, merged where they lie in
// one line in every argument; the innermost of the last argument, the one that is
// written, first.
template <size_t ARGUMENTS>
struct Problem {
  std::vector<Dim<ARGUMENTS>> rows;
  Dim<ARGUMENTS> reduced;
  uint64_t row_count;
};

struct Launch {
  std::string kernel;
  std::array<uint64_t, 3> grid; // threads
  std::array<uint64_t, 3> group;
};

struct Plan {
  Kernel kernel;
  bool use_u32;
  Launch launch;
};

template <size_t ARGUMENTS>
bool in_one_line(const Dim<ARGUMENTS>& inner, const Dim<ARGUMENTS>& outer) {
  for (size_t i = 0; i < ARGUMENTS; ++i) {
    if (outer.strides[i] != inner.strides[i] * inner.size) {
      return false;
    }
  }
  return true;
}

// Strides are by argument. `reduced` has the bit of one dimension, or none for a
// scalar. No argument is empty.
template <size_t ARGUMENTS>
Problem<ARGUMENTS> make_problem(
    const int64_t* sizes,
    const std::array<const int64_t*, ARGUMENTS>& strides,
    int64_t ndim,
    uint64_t reduced) {
  Problem<ARGUMENTS> problem{{}, {1, {}}, 1};
  std::vector<Dim<ARGUMENTS>> dims;
  for (int64_t d = ndim - 1; d >= 0; --d) {
    Dim<ARGUMENTS> dim{static_cast<uint64_t>(sizes[d]), {}};
    for (size_t i = 0; i < ARGUMENTS; ++i) {
      dim.strides[i] = static_cast<uint64_t>(strides[i][d]);
    }
    if ((reduced >> d & 1) != 0) {
      problem.reduced = dim;
    } else if (dim.size != 1) {
      problem.row_count *= dim.size;
      dims.push_back(dim);
    }
  }
  std::stable_sort(dims.begin(), dims.end(), [](const auto& a, const auto& b) {
    return a.strides.back() < b.strides.back();
  });
  for (const auto& dim : dims) {
    if (!problem.rows.empty() && in_one_line(problem.rows.back(), dim)) {
      problem.rows.back().size *= dim.size;
    } else {
      problem.rows.push_back(dim);
    }
  }
  return problem;
}

template <size_t ARGUMENTS>
Kernel choose_kernel(const Problem<ARGUMENTS>& problem) {
  return Kernel::Threadgroup;
}

// Rows of a layer of the grid, and layers.
inline std::array<uint64_t, 2> grid_of(uint64_t rows) {
  const auto layers = c10::metal::ceil_div(rows, kMaxGrid);
  return {c10::metal::ceil_div(rows, layers), layers};
}

template <size_t ARGUMENTS>
bool can_use_u32(const Problem<ARGUMENTS>& problem) {
  const auto [width, layers] = grid_of(problem.row_count);
  // Threads look one step behind a row's end.
  uint64_t most = std::max(
      width * layers, problem.reduced.size + ${NAME}_MAX_THREADS);
  for (size_t i = 0; i < ARGUMENTS; ++i) {
    uint64_t last = (problem.reduced.size - 1) * problem.reduced.strides[i];
    for (const auto& dim : problem.rows) {
      last += (dim.size - 1) * dim.strides[i];
    }
    most = std::max(most, last);
  }
  return most <= std::numeric_limits<uint32_t>::max();
}

template <typename idx_t, size_t ARGUMENTS>
${Name}Params<idx_t, ARGUMENTS> make_params(const Problem<ARGUMENTS>& problem) {
  ${Name}Params<idx_t, ARGUMENTS> params{};
  for (size_t d = 0; d < problem.rows.size(); ++d) {
    params.row_sizes[d] = static_cast<idx_t>(problem.rows[d].size);
    for (size_t i = 0; i < ARGUMENTS; ++i) {
      params.row_strides[i][d] =
          static_cast<idx_t>(problem.rows[d].strides[i]);
    }
  }
  for (size_t i = 0; i < ARGUMENTS; ++i) {
    params.strides[i] = static_cast<idx_t>(problem.reduced.strides[i]);
  }
  params.rows = static_cast<idx_t>(problem.row_count);
  params.size = static_cast<idx_t>(problem.reduced.size);
  params.row_ndim = static_cast<unsigned>(problem.rows.size());
  return params;
}

// `name` is ${name} or ${name}_backward, `dtype` the element type's name in
// Metal. can_use_u32 must hold if `use_u32`.
template <size_t ARGUMENTS>
Plan make_plan(
    const Problem<ARGUMENTS>& problem,
    const std::string& name,
    const std::string& dtype,
    Kernel kernel,
    bool use_u32) {
  const auto [width, layers] = grid_of(problem.row_count);
  const auto threads = std::min<uint64_t>(
      c10::metal::round_up<uint64_t>(
          problem.reduced.size, c10::metal::simdgroup_size),
      ${NAME}_MAX_THREADS);
  return {
      kernel,
      use_u32,
      {name + "_" + dtype + (use_u32 ? "_u32" : "_u64"),
       {threads, width, layers},
       {threads, 1, 1}}};
}

template <size_t ARGUMENTS>
Plan make_plan(
    const Problem<ARGUMENTS>& problem,
    const std::string& name,
    const std::string& dtype) {
  return make_plan(
      problem, name, dtype, choose_kernel(problem), can_use_u32(problem));
}

} // namespace at::native::mps::${name}

#pragma once

// Decides how ${name} runs: which kernel, on what grid, with what parameters.
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

enum Argument { INPUT, OUTPUT, ARGUMENTS };

// Rows up to this length are not worth a simdgroup.
constexpr uint64_t kShortRow = 16;
// Rows side by side that keep a GPU busy with a thread for each.
constexpr uint64_t kManyRows = 4096;
constexpr uint64_t kMaxGroupThreads = 1024;
constexpr uint64_t kColumnGroupThreads = 256;
// Threadgroups, or threads, on one side of a grid, which Metal counts with 32
// bits.
constexpr uint64_t kMaxGrid = uint64_t{1} << 31;

enum class Kernel : uint32_t { Row, Column };

struct Dim {
  uint64_t size;
  std::array<uint64_t, ARGUMENTS> strides; // in elements
};

// The dimensions that number the rows and those that are reduced, each merged
// where they lie in one line; the innermost of the input first.
struct Problem {
  std::vector<Dim> rows;
  std::vector<Dim> reduced;
  uint64_t row_count;
  uint64_t size; // elements of a row
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

// Adds `dim` outside of all others.
inline void merge(std::vector<Dim>& dims, const Dim& dim) {
  if (!dims.empty()) {
    auto& inner = dims.back();
    bool in_one_line = true;
    for (unsigned i = 0; i < ARGUMENTS; ++i) {
      in_one_line &= dim.strides[i] == inner.strides[i] * inner.size;
    }
    if (in_one_line) {
      inner.size *= dim.size;
      return;
    }
  }
  dims.push_back(dim);
}

// Sizes are the input's. Strides are by argument, the output's 0 where `reduced`
// has a bit. The output is not empty.
inline Problem make_problem(
    const int64_t* sizes,
    const std::array<const int64_t*, ARGUMENTS>& strides,
    int64_t ndim,
    uint64_t reduced) {
  struct Numbered {
    Dim dim;
    bool reduced;
  };
  Problem problem{{}, {}, 1, 1};
  std::vector<Numbered> dims;
  for (int64_t d = ndim - 1; d >= 0; --d) {
    const bool is_reduced = (reduced >> d & 1) != 0;
    Dim dim{static_cast<uint64_t>(sizes[d]), {}};
    for (unsigned i = 0; i < ARGUMENTS; ++i) {
      dim.strides[i] = static_cast<uint64_t>(strides[i][d]);
    }
    (is_reduced ? problem.size : problem.row_count) *= dim.size;
    if (dim.size != 1) {
      dims.push_back({dim, is_reduced});
    }
  }
  std::stable_sort(
      dims.begin(), dims.end(), [](const Numbered& a, const Numbered& b) {
        return a.dim.strides[INPUT] < b.dim.strides[INPUT];
      });
  for (const auto& item : dims) {
    merge(item.reduced ? problem.reduced : problem.rows, item.dim);
  }
  return problem;
}

// Whether a row's neighbouring elements lie closer than neighbouring rows.
inline bool reduces_innermost(const Problem& problem) {
  return problem.rows.empty() || problem.reduced.empty() ||
      problem.reduced.front().strides[INPUT] <
      problem.rows.front().strides[INPUT];
}

inline Kernel choose_kernel(const Problem& problem) {
  const bool side_by_side =
      !reduces_innermost(problem) && problem.row_count >= kManyRows;
  return problem.size <= kShortRow || side_by_side ? Kernel::Column
                                                   : Kernel::Row;
}

// Rows of a layer of the grid, and layers.
inline std::array<uint64_t, 2> grid_of(uint64_t rows) {
  const auto layers = c10::metal::ceil_div(rows, kMaxGrid);
  return {c10::metal::ceil_div(rows, layers), layers};
}

inline bool can_use_u32(const Problem& problem) {
  std::array<uint64_t, ARGUMENTS> last{};
  for (const auto* dims : {&problem.rows, &problem.reduced}) {
    for (const auto& dim : *dims) {
      for (unsigned i = 0; i < ARGUMENTS; ++i) {
        last[i] += (std::max<uint64_t>(dim.size, 1) - 1) * dim.strides[i];
      }
    }
  }
  const auto [width, layers] = grid_of(problem.row_count);
  // Threads look one step behind a row's end.
  const auto most = std::max(
      {last[INPUT], last[OUTPUT], width * layers, problem.size + kMaxGroupThreads});
  return most <= std::numeric_limits<uint32_t>::max();
}

template <typename idx_t>
${Name}Params<idx_t> make_params(const Problem& problem) {
  ${Name}Params<idx_t> params{};
  for (size_t d = 0; d < problem.rows.size(); ++d) {
    const auto& dim = problem.rows[d];
    params.row_sizes[d] = static_cast<idx_t>(dim.size);
    params.row_input_strides[d] = static_cast<idx_t>(dim.strides[INPUT]);
    params.row_output_strides[d] = static_cast<idx_t>(dim.strides[OUTPUT]);
  }
  for (size_t d = 0; d < problem.reduced.size(); ++d) {
    const auto& dim = problem.reduced[d];
    params.reduced_sizes[d] = static_cast<idx_t>(dim.size);
    params.reduced_strides[d] = static_cast<idx_t>(dim.strides[INPUT]);
  }
  params.rows = static_cast<idx_t>(problem.row_count);
  params.size = static_cast<idx_t>(problem.size);
  params.row_ndim = static_cast<unsigned>(problem.rows.size());
  params.reduced_ndim = static_cast<unsigned>(problem.reduced.size());
  return params;
}

// can_use_u32 must hold if `use_u32`. `dtype` is the element type's name in
// Metal.
inline Plan make_plan(
    const Problem& problem,
    const std::string& dtype,
    Kernel kernel,
    bool use_u32) {
  const std::string suffix = dtype + (use_u32 ? "_u32" : "_u64");
  const auto [width, layers] = grid_of(problem.row_count);
  if (kernel == Kernel::Column) {
    const auto threads = std::min(width, kColumnGroupThreads);
    return {
        kernel,
        use_u32,
        {"${name}_column_" + suffix, {width, layers, 1}, {threads, 1, 1}}};
  }
  const auto threads = std::clamp<uint64_t>(
      c10::metal::round_up<uint64_t>(
          problem.size, c10::metal::simdgroup_size),
      c10::metal::simdgroup_size,
      kMaxGroupThreads);
  return {
      kernel,
      use_u32,
      {"${name}_row_" + suffix, {threads, width, layers}, {threads, 1, 1}}};
}

inline Plan make_plan(const Problem& problem, const std::string& dtype) {
  return make_plan(
      problem, dtype, choose_kernel(problem), can_use_u32(problem));
}

} // namespace at::native::mps::${name}

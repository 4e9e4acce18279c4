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

constexpr uint64_t kGroupThreads = 256;
// Threads on one side of a grid, which Metal counts with 32 bits.
constexpr uint64_t kMaxGrid = uint64_t{1} << 31;

enum class Kernel : uint32_t { Dense, Strided };

struct Dim {
  uint64_t size;
  std::array<uint64_t, ARGUMENTS> strides; // in elements
};

// The tensors' dimensions, those merged that lie in one line in both of them;
// the innermost of the output first.
struct Problem {
  std::vector<Dim> dims;
  uint64_t numel;
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

inline bool in_one_line(const Dim& inner, const Dim& outer) {
  for (unsigned i = 0; i < ARGUMENTS; ++i) {
    if (outer.strides[i] != inner.strides[i] * inner.size) {
      return false;
    }
  }
  return true;
}

// Strides by argument; no tensor is empty.
inline Problem make_problem(
    const int64_t* sizes,
    const std::array<const int64_t*, ARGUMENTS>& strides,
    int64_t ndim) {
  Problem problem{{}, 1};
  std::vector<Dim> dims;
  for (int64_t d = ndim - 1; d >= 0; --d) {
    if (sizes[d] != 1) {
      Dim dim{static_cast<uint64_t>(sizes[d]), {}};
      for (unsigned i = 0; i < ARGUMENTS; ++i) {
        dim.strides[i] = static_cast<uint64_t>(strides[i][d]);
      }
      problem.numel *= dim.size;
      dims.push_back(dim);
    }
  }
  std::stable_sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) {
    return a.strides[OUTPUT] < b.strides[OUTPUT];
  });
  for (const auto& dim : dims) {
    if (!problem.dims.empty() && in_one_line(problem.dims.back(), dim)) {
      problem.dims.back().size *= dim.size;
    } else {
      problem.dims.push_back(dim);
    }
  }
  return problem;
}

// Whether `kernel` gives right results at all.
inline bool can_use(Kernel kernel, const Problem& problem) {
  const auto& dims = problem.dims;
  const bool dense = dims.empty() ||
      (dims.size() == 1 && dims[0].strides[INPUT] == 1 &&
       dims[0].strides[OUTPUT] == 1);
  return kernel == Kernel::Strided || dense;
}

// Threads on each side: for more than fit on one, the grid has layers.
inline std::array<uint64_t, 3> grid_of(uint64_t threads) {
  const auto layers = c10::metal::ceil_div(threads, kMaxGrid);
  return {c10::metal::ceil_div(threads, layers), layers, 1};
}

inline bool can_use_u32(const Problem& problem) {
  const auto grid = grid_of(problem.numel);
  std::array<uint64_t, ARGUMENTS> last{};
  for (const auto& dim : problem.dims) {
    for (unsigned i = 0; i < ARGUMENTS; ++i) {
      last[i] += (dim.size - 1) * dim.strides[i];
    }
  }
  const auto most = std::max({last[INPUT], last[OUTPUT], grid[0] * grid[1]});
  return most <= std::numeric_limits<uint32_t>::max();
}

inline Kernel choose_kernel(const Problem& problem) {
  return can_use(Kernel::Dense, problem) ? Kernel::Dense : Kernel::Strided;
}

template <typename idx_t>
${Name}Params<idx_t> make_params(const Problem& problem) {
  ${Name}Params<idx_t> params{};
  for (size_t d = 0; d < problem.dims.size(); ++d) {
    const auto& dim = problem.dims[d];
    params.sizes[d] = static_cast<idx_t>(dim.size);
    params.input_strides[d] = static_cast<idx_t>(dim.strides[INPUT]);
    params.output_strides[d] = static_cast<idx_t>(dim.strides[OUTPUT]);
  }
  params.ndim = static_cast<unsigned>(problem.dims.size());
  params.numel = static_cast<idx_t>(problem.numel);
  return params;
}

// `kernel` must be one that can_use allows, and can_use_u32 hold if `use_u32`.
// `dtype` is the element type's name in Metal.
inline Plan make_plan(
    const Problem& problem,
    const std::string& dtype,
    Kernel kernel,
    bool use_u32) {
  const std::string name =
      kernel == Kernel::Dense ? "${name}_dense_" : "${name}_strided_";
  const auto grid = grid_of(problem.numel);
  return {
      kernel,
      use_u32,
      {name + dtype + (use_u32 ? "_u32" : "_u64"),
       grid,
       {std::min(grid[0], kGroupThreads), 1, 1}}};
}

inline Plan make_plan(const Problem& problem, const std::string& dtype) {
  return make_plan(
      problem, dtype, choose_kernel(problem), can_use_u32(problem));
}

} // namespace at::native::mps::${name}

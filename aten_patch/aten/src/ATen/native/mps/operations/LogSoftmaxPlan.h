#pragma once

// Decides how log_softmax runs: which kernels, on what grids, with what
// parameters. Plain C++ without ATen or Metal, so that it can be compiled and
// tested on its own.

#include <ATen/native/mps/kernels/LogSoftmax.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace at::native::mps::log_softmax {

// Rows up to this length would keep at most a quarter of a simdgroup busy: the
// strided kernel gives them fewer threads.
constexpr uint64_t kTinyRow = 8;
// The longest row that fits into the registers of one threadgroup.
constexpr uint64_t kMaxRegisterRow =
    uint64_t{LOG_SOFTMAX_MAX_THREADS} * LOG_SOFTMAX_ROW_VALUES;
// Values a thread of the row kernel should hold: half of what it can, so that
// rows of a few hundred elements are still spread over several simdgroups.
constexpr uint64_t kRowValuesWanted = LOG_SOFTMAX_ROW_VALUES / 2;
// Threads of a threadgroup where the problem does not dictate their number:
// enough to hide latency, few enough for several threadgroups on a core.
constexpr uint64_t kGroupThreads = 256;
// Neighbouring rows a threadgroup of the strided kernel takes: as many as
// 4-byte elements make up a cache line of 128 bytes.
constexpr uint64_t kColumns = 32;
// Rows up to this length are done before a second launch would have begun.
constexpr uint64_t kMinSplitRow = 4096;
// A smaller chunk would leave a thread of its threadgroup less than 8 elements.
constexpr uint64_t kMinChunk = 8 * kGroupThreads;
// Chunks begin at multiples of this, a cache line of 4-byte elements.
constexpr uint64_t kChunkAlignment = 32;
// Threadgroups that keep a core busy while some of them wait for memory.
constexpr uint64_t kGroupsPerCore = 4;
// Positions in a grid are 32-bit, rows past this count go to the z axis.
constexpr uint64_t kMaxGridRows = uint64_t{1} << 31;
// How far past the last row or element a kernel counts before it compares: no
// kernel takes more at a time.
constexpr uint64_t kIndexOvershoot = kMaxRegisterRow;

// One dimension of the problem; strides are in elements.
struct Dim {
  uint64_t size = 1;
  uint64_t input_stride = 0;
  uint64_t output_stride = 0;
};

// A log_softmax over `reduced`, for each combination of indices into `rows`.
struct Problem {
  Dim reduced;
  std::vector<Dim> rows; // coalesced, innermost first, no dimension of size 1

  uint64_t row_count() const {
    uint64_t count = 1;
    for (const auto& dim : rows) {
      count *= dim.size;
    }
    return count;
  }
};

enum class Kernel : uint32_t {
  Row, // log_softmax_row: a row in registers, one read
  Split, // log_softmax_partial and log_softmax_finalize: few long rows
  Strided, // log_softmax: everything else
};

struct Launch {
  std::string kernel; // host name
  std::array<uint64_t, 3> grid; // threads, as for dispatchThreads
  std::array<uint64_t, 3> group;
};

struct Plan {
  Kernel kernel;
  bool use_u32;
  LogSoftmaxParams<uint64_t> params;
  std::vector<Launch> launches;
  uint64_t partials; // LogSumExp's that the launches exchange
};

constexpr uint64_t ceil_div(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

constexpr uint64_t round_up(uint64_t a, uint64_t b) {
  return ceil_div(a, b) * b;
}

constexpr uint64_t floor_power_of_two(uint64_t value) {
  uint64_t power = 1;
  while (power <= value / 2) {
    power *= 2;
  }
  return power;
}

constexpr uint64_t ceil_power_of_two(uint64_t value) {
  return value <= 1 ? 1 : 2 * floor_power_of_two(value - 1);
}

// Order in memory. The input's, which may be read twice; the output's where the
// input is expanded.
inline uint64_t memory_order(const Dim& dim) {
  return dim.input_stride != 0 ? dim.input_stride : dim.output_stride;
}

// Sorts by stride and merges each dimension that continues its neighbour.
inline std::vector<Dim> coalesce(std::vector<Dim> dims) {
  std::sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) {
    return memory_order(a) != memory_order(b)
        ? memory_order(a) < memory_order(b)
        : a.output_stride < b.output_stride;
  });
  std::vector<Dim> merged;
  for (const auto& dim : dims) {
    if (dim.size == 1) {
      continue;
    }
    if (!merged.empty()) {
      auto& inner = merged.back();
      if (dim.input_stride == inner.input_stride * inner.size &&
          dim.output_stride == inner.output_stride * inner.size) {
        inner.size *= dim.size;
        continue;
      }
    }
    merged.push_back(dim);
  }
  return merged;
}

// Of tensors with `ndim` dimensions, none of them empty; `dim` is in [0, ndim),
// and ignored where ndim is 0.
inline Problem make_problem(
    const int64_t* sizes,
    const int64_t* input_strides,
    const int64_t* output_strides,
    int64_t ndim,
    int64_t dim) {
  Problem problem;
  for (int64_t d = 0; d < ndim; ++d) {
    Dim current;
    if (sizes[d] != 1) {
      current = {
          static_cast<uint64_t>(sizes[d]),
          static_cast<uint64_t>(input_strides[d]),
          static_cast<uint64_t>(output_strides[d])};
    }
    if (d == dim) {
      problem.reduced = current;
    } else {
      problem.rows.push_back(current);
    }
  }
  problem.rows = coalesce(std::move(problem.rows));
  return problem;
}

// Whether a row's neighbouring elements are no farther apart than its
// neighbouring rows'.
inline bool reduces_innermost(const Problem& problem) {
  return problem.rows.empty() ||
      memory_order(problem.reduced) <= memory_order(problem.rows.front());
}

// Whether no index that a kernel computes exceeds 32 bits.
inline bool can_use_u32(const Problem& problem) {
  const auto& reduced = problem.reduced;
  uint64_t input_offset = (reduced.size - 1) * reduced.input_stride;
  uint64_t output_offset = (reduced.size - 1) * reduced.output_stride;
  for (const auto& dim : problem.rows) {
    input_offset += (dim.size - 1) * dim.input_stride;
    output_offset += (dim.size - 1) * dim.output_stride;
  }
  const uint64_t count = std::max(problem.row_count(), reduced.size);
  const uint64_t last =
      std::max({input_offset, output_offset, count + kIndexOvershoot});
  return last <= std::numeric_limits<uint32_t>::max();
}

// Whether `kernel` gives right results at all.
inline bool can_use(Kernel kernel, const Problem& problem) {
  switch (kernel) {
    case Kernel::Row:
      return problem.reduced.size <= kMaxRegisterRow;
    case Kernel::Split:
      return problem.row_count() <= kMaxGridRows;
    case Kernel::Strided:
      return true;
  }
  return false;
}

inline Kernel choose_kernel(const Problem& problem, uint64_t cores) {
  const uint64_t size = problem.reduced.size;
  const uint64_t rows = problem.row_count();
  // A row that fits is read once if it is not split, so only idle cores justify
  // splitting it. Others are read twice either way.
  const uint64_t busy =
      size <= kMaxRegisterRow ? cores : kGroupsPerCore * cores;
  if (size > kMinSplitRow && rows < busy) {
    return Kernel::Split;
  }
  if (reduces_innermost(problem) && size > kTinyRow &&
      size <= kMaxRegisterRow) {
    return Kernel::Row;
  }
  return Kernel::Strided;
}

inline LogSoftmaxParams<uint64_t> make_params(const Problem& problem) {
  LogSoftmaxParams<uint64_t> params{};
  for (size_t d = 0; d < problem.rows.size(); ++d) {
    params.row_sizes[d] = problem.rows[d].size;
    params.row_input_strides[d] = problem.rows[d].input_stride;
    params.row_output_strides[d] = problem.rows[d].output_stride;
  }
  params.row_ndim = static_cast<unsigned>(problem.rows.size());
  params.rows = problem.row_count();
  params.dim_size = problem.reduced.size;
  params.dim_input_stride = problem.reduced.input_stride;
  params.dim_output_stride = problem.reduced.output_stride;
  params.chunk_size = problem.reduced.size;
  params.chunks = 1;
  return params;
}

inline LogSoftmaxParams<uint32_t> narrow(
    const LogSoftmaxParams<uint64_t>& params) {
  const auto to_u32 = [](uint64_t value) {
    return static_cast<uint32_t>(value);
  };
  LogSoftmaxParams<uint32_t> narrowed{};
  for (unsigned d = 0; d < params.row_ndim; ++d) {
    narrowed.row_sizes[d] = to_u32(params.row_sizes[d]);
    narrowed.row_input_strides[d] = to_u32(params.row_input_strides[d]);
    narrowed.row_output_strides[d] = to_u32(params.row_output_strides[d]);
  }
  narrowed.row_ndim = params.row_ndim;
  narrowed.rows = to_u32(params.rows);
  narrowed.dim_size = to_u32(params.dim_size);
  narrowed.dim_input_stride = to_u32(params.dim_input_stride);
  narrowed.dim_output_stride = to_u32(params.dim_output_stride);
  narrowed.chunk_size = to_u32(params.chunk_size);
  narrowed.chunks = to_u32(params.chunks);
  return narrowed;
}

inline Launch row_launch(
    std::string kernel,
    const LogSoftmaxParams<uint64_t>& params) {
  constexpr uint64_t simdgroup = c10::metal::simdgroup_size;
  const uint64_t wanted =
      round_up(ceil_div(params.dim_size, kRowValuesWanted), simdgroup);
  const uint64_t threads = std::min<uint64_t>(wanted, LOG_SOFTMAX_MAX_THREADS);
  const uint64_t layers = ceil_div(params.rows, kMaxGridRows);
  const uint64_t rows = ceil_div(params.rows, layers);
  // Only rows of a single simdgroup may share a threadgroup: they need no
  // barrier.
  const uint64_t rows_per_group =
      threads == simdgroup ? std::min(rows, kGroupThreads / simdgroup) : 1;
  return {
      std::move(kernel), {threads, rows, layers}, {threads, rows_per_group, 1}};
}

inline Launch strided_launch(
    std::string kernel,
    const LogSoftmaxParams<uint64_t>& params,
    bool innermost) {
  const uint64_t all_columns =
      std::min(ceil_power_of_two(params.rows), kGroupThreads);
  const bool along_row = innermost && params.dim_size > kTinyRow;
  uint64_t columns = along_row ? 1 : std::min(all_columns, kColumns);
  const uint64_t slices = std::min(
      floor_power_of_two(ceil_div(params.dim_size, LOG_SOFTMAX_LOOP_VALUES)),
      LOG_SOFTMAX_MAX_THREADS / columns);
  if (columns * slices < kGroupThreads) {
    columns = std::min(all_columns, kGroupThreads / slices);
  }
  const uint64_t layers = ceil_div(params.rows, kMaxGridRows);
  const uint64_t width = round_up(ceil_div(params.rows, layers), columns);
  return {std::move(kernel), {width, slices, layers}, {columns, slices, 1}};
}

inline void split(LogSoftmaxParams<uint64_t>& params, uint64_t cores) {
  const uint64_t wanted = ceil_div(kGroupsPerCore * cores, params.rows);
  const uint64_t most = ceil_div(params.dim_size, kMinChunk);
  params.chunk_size = round_up(
      ceil_div(params.dim_size, std::min(wanted, most)), kChunkAlignment);
  params.chunks = ceil_div(params.dim_size, params.chunk_size);
}

// `kernel` must be one that can_use allows, and can_use_u32 hold if `use_u32`.
// `dtype` is the element type's name in Metal, `cores` the GPU's.
inline Plan make_plan(
    const Problem& problem,
    const std::string& dtype,
    uint64_t cores,
    Kernel kernel,
    bool use_u32) {
  Plan plan{kernel, use_u32, make_params(problem), {}, 0};
  const std::string suffix = "_" + dtype + (use_u32 ? "_u32" : "_u64");
  switch (kernel) {
    case Kernel::Row:
      plan.launches = {row_launch("log_softmax_row" + suffix, plan.params)};
      break;
    case Kernel::Split: {
      split(plan.params, cores);
      const std::array<uint64_t, 3> grid = {
          kGroupThreads, plan.params.chunks, plan.params.rows};
      const std::array<uint64_t, 3> group = {kGroupThreads, 1, 1};
      plan.launches = {
          {"log_softmax_partial" + suffix, grid, group},
          {"log_softmax_finalize" + suffix, grid, group}};
      plan.partials = plan.params.rows * plan.params.chunks;
      break;
    }
    case Kernel::Strided:
      plan.launches = {strided_launch(
          "log_softmax" + suffix, plan.params, reduces_innermost(problem))};
      break;
  }
  return plan;
}

inline Plan make_plan(
    const Problem& problem,
    const std::string& dtype,
    uint64_t cores) {
  return make_plan(
      problem,
      dtype,
      cores,
      choose_kernel(problem, cores),
      can_use_u32(problem));
}

} // namespace at::native::mps::log_softmax

#pragma once

// Decides how log_softmax runs: which kernels, on what grids, with what
// parameters. Plain C++ without ATen or Metal, so that it can be compiled and
// tested on its own.

#include <ATen/native/mps/operations/LogSoftmaxPlanCommon.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace at::native::mps::log_softmax {

using namespace log_softmax_common;
using Problem = log_softmax_common::Problem<2>;

// Rows that a threadgroup of log_softmax_transpose takes at least: a cache line
// of 4-byte elements to write, and half of one of 2-byte elements.
constexpr uint64_t kTransposedRows = 32;
// Rows up to this length are read by a thread each, and so written side by side
// without a detour through threadgroup memory.
constexpr uint64_t kTinyRow =
    LOG_SOFTMAX_ROW_VECTORS * LOG_SOFTMAX_SCALARS_PER_VECTOR;

enum class Kernel : uint32_t {
  Row, // log_softmax_row: rows that lie along the reduced dimension
  Split, // log_softmax_partial and log_softmax_finalize: few long rows
  Strided, // log_softmax: rows side by side
  LongStrided, // log_softmax_long: as Strided, of any length
  Transpose, // log_softmax_transpose: as Row, but side by side in the output
  LongRow, // log_softmax_long_row: as Row, of any length
};

struct Plan {
  Kernel kernel;
  bool use_u32;
  LogSoftmaxParams<uint64_t> params;
  std::vector<Launch> launches;
  uint64_t partials; // LogSumExp's that the launches exchange
};

// As log_softmax_common::make_problem. The input's order in memory decides: it
// may be read twice.
inline Problem make_problem(
    const int64_t* sizes,
    const int64_t* input_strides,
    const int64_t* output_strides,
    int64_t ndim,
    int64_t dim,
    uint64_t element_size,
    uint64_t input_offset,
    uint64_t output_offset) {
  return log_softmax_common::make_problem<2>(
      sizes,
      {input_strides, output_strides},
      ndim,
      dim,
      element_size,
      {input_offset, output_offset});
}

// Whether rows' neighbours in the output are other rows, unlike in the input.
inline bool transposes(const Problem& problem) {
  return reduces_innermost(problem) && !problem.rows.empty() &&
      problem.rows.front().strides[LOG_SOFTMAX_OUTPUT] <
      problem.reduced.strides[LOG_SOFTMAX_OUTPUT];
}

inline bool uses_vectors(Kernel kernel, const Problem& problem) {
  switch (kernel) {
    case Kernel::Row:
    case Kernel::LongRow:
    case Kernel::Split:
      return problem.reduced.strides[LOG_SOFTMAX_INPUT] == 1 &&
          problem.reduced.size >= problem.vector_size() *
              (steps_in_vectors(problem, LOG_SOFTMAX_INPUT, true)
                   ? kMinVectorsOfRow
                   : kMinVectorsOfUnalignedRow);
    case Kernel::Strided:
    case Kernel::LongStrided:
      return steps_in_vectors(problem, LOG_SOFTMAX_INPUT, false) &&
          steps_in_vectors(problem, LOG_SOFTMAX_OUTPUT, false);
    case Kernel::Transpose:
      return steps_in_vectors(problem, LOG_SOFTMAX_INPUT, true) &&
          steps_in_vectors(problem, LOG_SOFTMAX_OUTPUT, false);
  }
  return false;
}

constexpr uint64_t held_vectors(Kernel kernel) {
  switch (kernel) {
    case Kernel::Row:
      return LOG_SOFTMAX_ROW_VECTORS;
    case Kernel::Split:
      return LOG_SOFTMAX_CHUNK_VECTORS;
    case Kernel::Strided:
    case Kernel::LongStrided:
      return LOG_SOFTMAX_COLUMN_VECTORS;
    case Kernel::Transpose:
      return LOG_SOFTMAX_TRANSPOSE_VECTORS;
    case Kernel::LongRow:
      return LOG_SOFTMAX_LONG_ROW_VECTORS;
  }
  return 1;
}

constexpr bool is_strided(Kernel kernel) {
  return kernel == Kernel::Strided || kernel == Kernel::LongStrided;
}

inline Units make_units(const Problem& problem, Kernel kernel) {
  const bool vectors = uses_vectors(kernel, problem);
  const uint64_t held = held_vectors(kernel);
  const uint64_t size = vectors ? problem.vector_size() : 1;
  return {
      size,
      ceil_div(problem.reduced.size, is_strided(kernel) ? 1 : size),
      vectors ? held : held * LOG_SOFTMAX_SCALARS_PER_VECTOR,
      is_strided(kernel)
          ? LOG_SOFTMAX_COLUMN_THREADS / line_units(problem, size)
          : LOG_SOFTMAX_MAX_THREADS};
}

// Whether `kernel` gives right results at all.
inline bool can_use(Kernel kernel, const Problem& problem) {
  switch (kernel) {
    case Kernel::Row:
    case Kernel::Strided:
      return make_units(problem, kernel).fit();
    case Kernel::Split:
      return problem.row_count() <= kMaxGridRows;
    case Kernel::LongStrided:
    case Kernel::Transpose:
    case Kernel::LongRow:
      return true;
  }
  return false;
}

inline Kernel choose_kernel(const Problem& problem, uint64_t cores) {
  const uint64_t size = problem.reduced.size;
  // A row that fits is read once if it is not split, so only idle cores justify
  // splitting it. Others are read twice either way.
  const uint64_t busy = make_units(problem, Kernel::LongRow).fit()
      ? cores
      : kGroupsPerCore * cores;
  if (size > kMinSplitRow && problem.row_count() < busy) {
    return Kernel::Split;
  }
  if (!reduces_innermost(problem)) {
    return can_use(Kernel::Strided, problem) ? Kernel::Strided
                                             : Kernel::LongStrided;
  }
  if (transposes(problem) && size > kTinyRow) {
    return Kernel::Transpose;
  }
  return make_units(problem, Kernel::Row).threads() <= kGroupThreads
      ? Kernel::Row
      : Kernel::LongRow;
}

inline Launch transpose_launch(
    std::string kernel,
    const Problem& problem,
    const Units& units) {
  constexpr uint64_t most = LOG_SOFTMAX_TRANSPOSE_THREADS / kTransposedRows;
  const uint64_t threads = std::min(ceil_power_of_two(units.threads()), most);
  const uint64_t rows_per_group =
      std::max(kTransposedRows, kGroupThreads / threads);
  const auto [rows, layers] = grid_rows(problem.row_count(), rows_per_group);
  return {
      std::move(kernel), {threads, rows, layers}, {threads, rows_per_group, 1}};
}

// `kernel` must be one that can_use allows, and can_use_u32 hold if `use_u32`.
// `dtype` is the element type's name in Metal, `cores` the GPU's.
inline Plan make_plan(
    const Problem& problem,
    const std::string& dtype,
    uint64_t cores,
    Kernel kernel,
    bool use_u32) {
  Plan plan{
      kernel,
      use_u32,
      make_params(problem, uses_vectors(kernel, problem)),
      {},
      0};
  const std::string suffix = "_" + dtype + (use_u32 ? "_u32" : "_u64");
  const auto units = make_units(problem, kernel);
  const auto row_units = spread(units, problem.row_count(), cores);
  const bool whole =
      units.size == 1 || steps_in_vectors(problem, LOG_SOFTMAX_INPUT, true);
  switch (kernel) {
    case Kernel::Row:
      plan.launches = {
          row_launch("log_softmax_row" + suffix, problem, row_units, whole)};
      break;
    case Kernel::Split: {
      split(plan.params, units.size, cores);
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
      plan.launches = {
          strided_launch("log_softmax" + suffix, problem, units, cores)};
      break;
    case Kernel::LongStrided:
      plan.launches = {
          strided_launch("log_softmax_long" + suffix, problem, units, cores)};
      break;
    case Kernel::LongRow:
      plan.launches = {row_launch(
          "log_softmax_long_row" + suffix, problem, row_units, whole)};
      break;
    case Kernel::Transpose:
      plan.launches = {
          transpose_launch("log_softmax_transpose" + suffix, problem, units)};
      break;
  }
  return plan;
}

} // namespace at::native::mps::log_softmax

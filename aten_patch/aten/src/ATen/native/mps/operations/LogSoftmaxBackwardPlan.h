#pragma once

// Decides how log_softmax's backward runs, as LogSoftmaxPlan.h does for the
// forward.

#include <ATen/native/mps/kernels/LogSoftmaxBackward.h>
#include <ATen/native/mps/operations/LogSoftmaxPlanCommon.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace at::native::mps::log_softmax_backward {

using namespace log_softmax_common;
using Problem = log_softmax_common::Problem<LOG_SOFTMAX_BACKWARD_TENSORS>;

enum class Kernel : uint32_t {
  Row, // log_softmax_backward_row: rows that lie along the reduced dimension
  Split, // log_softmax_backward_partial and _finalize: few long rows
  Strided, // log_softmax_backward: rows side by side
  LongRow, // log_softmax_backward_long_row: as Row, of any length
};

struct Plan {
  Kernel kernel;
  bool use_u32;
  LogSoftmaxBackwardParams<uint64_t> params;
  std::vector<Launch> launches;
  uint64_t partials; // floats that the launches exchange
};

// As log_softmax_common::make_problem. The output's order in memory decides:
// unlike grad, it is seldom expanded, and grad_input mostly has it too.
inline Problem make_problem(
    const int64_t* sizes,
    const int64_t* grad_strides,
    const int64_t* output_strides,
    const int64_t* grad_input_strides,
    int64_t ndim,
    int64_t dim,
    uint64_t element_size,
    uint64_t grad_offset,
    uint64_t output_offset,
    uint64_t grad_input_offset) {
  std::array<const int64_t*, LOG_SOFTMAX_BACKWARD_TENSORS> strides{};
  strides[LOG_SOFTMAX_BACKWARD_GRAD] = grad_strides;
  strides[LOG_SOFTMAX_BACKWARD_OUTPUT] = output_strides;
  strides[LOG_SOFTMAX_BACKWARD_GRAD_INPUT] = grad_input_strides;
  return log_softmax_common::make_problem<LOG_SOFTMAX_BACKWARD_TENSORS>(
      sizes,
      strides,
      ndim,
      dim,
      element_size,
      {grad_offset, output_offset, grad_input_offset});
}

// As steps_in_vectors, of all tensors.
inline bool all_step_in_vectors(const Problem& problem, bool along_row) {
  return steps_in_vectors(problem, LOG_SOFTMAX_BACKWARD_GRAD, along_row) &&
      steps_in_vectors(problem, LOG_SOFTMAX_BACKWARD_OUTPUT, along_row) &&
      steps_in_vectors(problem, LOG_SOFTMAX_BACKWARD_GRAD_INPUT, along_row);
}

inline bool uses_vectors(Kernel kernel, const Problem& problem) {
  if (kernel == Kernel::Strided) {
    return all_step_in_vectors(problem, false);
  }
  return problem.reduced.strides[LOG_SOFTMAX_BACKWARD_OUTPUT] == 1 &&
      problem.reduced.size >= kMinVectorsOfRow * problem.vector_size();
}

constexpr uint64_t held_vectors(Kernel kernel) {
  switch (kernel) {
    case Kernel::Row:
      return LOG_SOFTMAX_BACKWARD_ROW_VECTORS;
    case Kernel::LongRow:
      return LOG_SOFTMAX_BACKWARD_LONG_ROW_VECTORS;
    case Kernel::Split:
      return LOG_SOFTMAX_BACKWARD_CHUNK_VECTORS;
    case Kernel::Strided:
      return LOG_SOFTMAX_BACKWARD_COLUMN_VECTORS;
  }
  return 1;
}

constexpr uint64_t max_threads(Kernel kernel) {
  switch (kernel) {
    case Kernel::Row:
    case Kernel::Split:
      return LOG_SOFTMAX_MAX_THREADS;
    case Kernel::Strided:
      return LOG_SOFTMAX_BACKWARD_COLUMN_THREADS;
    case Kernel::LongRow:
      return LOG_SOFTMAX_BACKWARD_LONG_ROW_THREADS;
  }
  return 1;
}

inline Units make_units(const Problem& problem, Kernel kernel) {
  const bool strided = kernel == Kernel::Strided;
  const bool vectors = uses_vectors(kernel, problem);
  const uint64_t held = held_vectors(kernel);
  const uint64_t size = vectors ? problem.vector_size() : 1;
  return {
      size,
      strided ? problem.reduced.size : ceil_div(problem.reduced.size, size),
      vectors ? held : held * LOG_SOFTMAX_SCALARS_PER_VECTOR,
      max_threads(kernel) / (strided ? line_units(problem, size) : 1)};
}

// Whether `kernel` gives right results at all.
inline bool can_use(Kernel kernel, const Problem& problem) {
  switch (kernel) {
    case Kernel::Row:
      return make_units(problem, kernel).fit();
    case Kernel::Split:
      return problem.row_count() <= kMaxGridRows;
    case Kernel::Strided:
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
    return Kernel::Strided;
  }
  return can_use(Kernel::Row, problem) ? Kernel::Row : Kernel::LongRow;
}

// `kernel` must be one that can_use allows, and can_use_u32 hold if `use_u32`.
// `dtype` is the element type's name in Metal, `cores` the GPU's.
inline Plan make_plan(
    const Problem& problem,
    const std::string& dtype,
    uint64_t cores,
    Kernel kernel,
    bool use_u32) {
  const auto units = make_units(problem, kernel);
  Plan plan{kernel, use_u32, make_params(problem, units.size != 1), {}, 0};
  const std::string name = "log_softmax_backward";
  const std::string suffix = "_" + dtype + (use_u32 ? "_u32" : "_u64");
  const bool whole = units.size == 1 ||
      steps_in_vectors(problem, LOG_SOFTMAX_BACKWARD_OUTPUT, true);
  switch (kernel) {
    case Kernel::Row:
      plan.launches = {
          row_launch(name + "_row" + suffix, problem, units, whole)};
      break;
    case Kernel::LongRow:
      plan.launches = {
          row_launch(name + "_long_row" + suffix, problem, units, whole)};
      break;
    case Kernel::Split: {
      split(plan.params, units.size, cores);
      const std::array<uint64_t, 3> grid = {
          kGroupThreads, plan.params.chunks, plan.params.rows};
      const std::array<uint64_t, 3> group = {kGroupThreads, 1, 1};
      plan.launches = {
          {name + "_partial" + suffix, grid, group},
          {name + "_finalize" + suffix, grid, group}};
      plan.partials = plan.params.rows * plan.params.chunks;
      break;
    }
    case Kernel::Strided:
      plan.launches = {strided_launch(name + suffix, problem, units, cores)};
      break;
  }
  return plan;
}

} // namespace at::native::mps::log_softmax_backward

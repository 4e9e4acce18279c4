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

// Values of a shorter row are loaded one by one: vectors would leave most of a
// row's threads without any.
constexpr uint64_t kMinVectorsOfRow = 8;
// Longer rows are for log_softmax_long_row: with more values to a thread, a
// core has more rows at a time, one reading while another writes. Shorter ones
// are bound by latency, which is for more threads to hide.
constexpr uint64_t kLongRow = 1024;
// Threads of a threadgroup where the problem does not dictate their number:
// enough to hide latency, few enough for several threadgroups on a core.
constexpr uint64_t kGroupThreads = 256;
// Bytes of rows side by side that a threadgroup takes: a cache line; half of it
// where that keeps the threadgroup's values, and so its threads, so few that
// several of them share a core; or what a GPU fetches from memory at least,
// where cores would be idle otherwise.
constexpr uint64_t kLineBytes = 128;
constexpr uint64_t kHalfLineBytes = 64;
constexpr uint64_t kMinLineBytes = 32;
constexpr uint64_t kTileValues = 16384;
// Rows that a threadgroup of log_softmax_transpose takes at least: a cache line
// of 4-byte elements to write, and half of one of 2-byte elements.
constexpr uint64_t kTransposedRows = 32;
// Rows up to this length are done before a second launch would have begun.
constexpr uint64_t kMinSplitRow = 4096;
// Chunks begin at multiples of this, a cache line of 4-byte elements.
constexpr uint64_t kChunkAlignment = 32;
// Threadgroups that keep a core busy while some of them wait for memory.
constexpr uint64_t kGroupsPerCore = 4;
// Rows up to this length are read by a thread each, and so written side by side
// without a detour through threadgroup memory.
constexpr uint64_t kTinyRow =
    LOG_SOFTMAX_ROW_VECTORS * LOG_SOFTMAX_SCALARS_PER_VECTOR;
// Positions in a grid are 32-bit, rows past this count go to the z axis.
constexpr uint64_t kMaxGridRows = uint64_t{1} << 31;
// How far past the last row or element a kernel counts before it compares: no
// kernel takes more at a time.
constexpr uint64_t kIndexOvershoot = 32768;

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
  uint64_t element_size; // bytes
  bool aligned; // both tensors begin where a vector may

  uint64_t vector_size() const {
    return LOG_SOFTMAX_VECTOR_BYTES / element_size;
  }

  uint64_t row_count() const {
    uint64_t count = 1;
    for (const auto& dim : rows) {
      count *= dim.size;
    }
    return count;
  }
};

enum class Kernel : uint32_t {
  Row, // log_softmax_row: rows that lie along the reduced dimension
  Split, // log_softmax_partial and log_softmax_finalize: few long rows
  Strided, // log_softmax: rows side by side
  LongStrided, // log_softmax_long: as Strided, of any length
  Transpose, // log_softmax_transpose: as Row, but side by side in the output
  LongRow, // log_softmax_long_row: as Row, of any length
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
// and ignored where ndim is 0. The offsets, in bytes, are the tensors' in
// memory that is aligned for vectors.
inline Problem make_problem(
    const int64_t* sizes,
    const int64_t* input_strides,
    const int64_t* output_strides,
    int64_t ndim,
    int64_t dim,
    uint64_t element_size,
    uint64_t input_offset,
    uint64_t output_offset) {
  Problem problem;
  problem.element_size = element_size;
  problem.aligned = input_offset % LOG_SOFTMAX_VECTOR_BYTES == 0 &&
      output_offset % LOG_SOFTMAX_VECTOR_BYTES == 0;
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

// Whether rows' neighbours in the output are other rows, unlike in the input.
inline bool transposes(const Problem& problem) {
  return reduces_innermost(problem) && !problem.rows.empty() &&
      problem.rows.front().output_stride < problem.reduced.output_stride;
}

// Whether every row's first unit, and every step from unit to unit, is a
// multiple of the vector size away from the tensor's beginning.
inline bool steps_in_vectors(
    const Problem& problem,
    uint64_t Dim::* stride,
    bool along_row) {
  const uint64_t vector = problem.vector_size();
  const auto& rows = problem.rows;
  if (!along_row && (rows.empty() || problem.reduced.*stride % vector != 0)) {
    return false;
  }
  const Dim& along = along_row ? problem.reduced : rows.front();
  return problem.aligned && along.*stride == 1 && along.size % vector == 0 &&
      std::all_of(
             rows.begin() + (along_row ? 0 : 1),
             rows.end(),
             [&](const Dim& dim) { return dim.*stride % vector == 0; });
}

inline bool uses_vectors(Kernel kernel, const Problem& problem) {
  switch (kernel) {
    case Kernel::Row:
    case Kernel::LongRow:
    case Kernel::Split:
      return problem.reduced.input_stride == 1 &&
          problem.reduced.size >= kMinVectorsOfRow * problem.vector_size();
    case Kernel::Strided:
    case Kernel::LongStrided:
      return steps_in_vectors(problem, &Dim::input_stride, false) &&
          steps_in_vectors(problem, &Dim::output_stride, false);
    case Kernel::Transpose:
      return steps_in_vectors(problem, &Dim::input_stride, true) &&
          steps_in_vectors(problem, &Dim::output_stride, false);
  }
  return false;
}

// How a row, or as many neighbouring rows as a unit has values, is dealt out to
// threads.
struct Units {
  uint64_t size; // values of a unit
  uint64_t count;
  uint64_t held; // by a thread
  uint64_t max_threads;

  uint64_t threads() const {
    return std::min(ceil_div(count, held), max_threads);
  }

  bool fit() const {
    return count <= held * max_threads;
  }
};

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

// Units of neighbouring rows, side by side, that a threadgroup takes unless
// there are too few.
inline uint64_t line_units(const Problem& problem, uint64_t unit_size) {
  const uint64_t unit_bytes = unit_size * problem.element_size;
  uint64_t units =
      std::min<uint64_t>(kLineBytes / unit_bytes, c10::metal::simdgroup_size);
  while (units * unit_bytes > kHalfLineBytes &&
         units * unit_size * problem.reduced.size > kTileValues) {
    units /= 2;
  }
  return units;
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
  return size <= kLongRow ? Kernel::Row : Kernel::LongRow;
}

inline LogSoftmaxParams<uint64_t> make_params(
    const Problem& problem,
    Kernel kernel) {
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
  params.vectors = uses_vectors(kernel, problem);
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
  narrowed.vectors = params.vectors;
  narrowed.rows = to_u32(params.rows);
  narrowed.dim_size = to_u32(params.dim_size);
  narrowed.dim_input_stride = to_u32(params.dim_input_stride);
  narrowed.dim_output_stride = to_u32(params.dim_output_stride);
  narrowed.chunk_size = to_u32(params.chunk_size);
  narrowed.chunks = to_u32(params.chunks);
  return narrowed;
}

// Layers of at most kMaxGridRows rows, or a few more for a multiple of `step`:
// rows of one, and their number.
inline std::pair<uint64_t, uint64_t> grid_rows(uint64_t rows, uint64_t step) {
  const uint64_t layers = ceil_div(rows, kMaxGridRows);
  return {round_up(ceil_div(rows, layers), step), layers};
}

inline Launch row_launch(
    std::string kernel,
    const Problem& problem,
    const Units& units) {
  constexpr uint64_t simdgroup = c10::metal::simdgroup_size;
  // What vectors leave of a row at both its ends takes a thread a value.
  const bool whole =
      units.size == 1 || steps_in_vectors(problem, &Dim::input_stride, true);
  const uint64_t least = whole ? 1 : 2 * units.size;
  const uint64_t wanted = std::max(units.threads(), least);
  const uint64_t threads = wanted <= simdgroup ? ceil_power_of_two(wanted)
                                               : round_up(wanted, simdgroup);
  const auto [rows, layers] = grid_rows(problem.row_count(), 1);
  // Only rows of a single simdgroup may share a threadgroup: they need no
  // barrier.
  const uint64_t rows_per_group =
      threads <= simdgroup ? std::min(rows, kGroupThreads / threads) : 1;
  return {
      std::move(kernel), {threads, rows, layers}, {threads, rows_per_group, 1}};
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

inline Launch strided_launch(
    std::string kernel,
    const Problem& problem,
    const Units& units,
    uint64_t cores) {
  constexpr uint64_t simdgroup = c10::metal::simdgroup_size;
  const uint64_t row_units = ceil_div(problem.row_count(), units.size);
  const uint64_t unit_bytes = units.size * problem.element_size;
  uint64_t columns = line_units(problem, units.size);
  while (columns * unit_bytes > kMinLineBytes && row_units < cores * columns) {
    columns /= 2;
  }
  const uint64_t all_columns = ceil_power_of_two(row_units);
  columns = std::min(columns, all_columns);
  const uint64_t wanted = units.threads();
  const uint64_t slices = wanted * columns <= simdgroup
      ? ceil_power_of_two(wanted)
      : round_up(wanted, simdgroup / columns);
  // Rows that are a thread's alone, or a simdgroup's, are as many as fit.
  const uint64_t fit = slices == 1 ? kGroupThreads : simdgroup / slices;
  columns = std::min(std::max(columns, fit), all_columns);
  const auto [width, layers] = grid_rows(row_units, columns);
  return {std::move(kernel), {width, slices, layers}, {columns, slices, 1}};
}

inline void split(
    LogSoftmaxParams<uint64_t>& params,
    uint64_t unit_size,
    uint64_t cores) {
  const uint64_t wanted = ceil_div(kGroupsPerCore * cores, params.rows);
  // At least a unit for each thread of a chunk.
  const uint64_t most = ceil_div(params.dim_size, kGroupThreads * unit_size);
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
  Plan plan{kernel, use_u32, make_params(problem, kernel), {}, 0};
  const std::string suffix = "_" + dtype + (use_u32 ? "_u32" : "_u64");
  const auto units = make_units(problem, kernel);
  switch (kernel) {
    case Kernel::Row:
      plan.launches = {row_launch("log_softmax_row" + suffix, problem, units)};
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
      plan.launches = {
          row_launch("log_softmax_long_row" + suffix, problem, units)};
      break;
    case Kernel::Transpose:
      plan.launches = {
          transpose_launch("log_softmax_transpose" + suffix, problem, units)};
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

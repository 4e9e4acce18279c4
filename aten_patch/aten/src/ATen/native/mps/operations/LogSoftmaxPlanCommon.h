#pragma once

// What the plans of log_softmax and of its backward share: the problem, the
// units that rows are dealt out in, grids. Plain C++ without ATen or Metal.

#include <ATen/native/mps/kernels/LogSoftmax.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace at::native::mps::log_softmax_common {

// Values of a shorter row are loaded one by one: vectors would leave most of a
// row's threads without any.
constexpr uint64_t kMinVectorsOfRow = 8;
// The same where the rows' ends take threads of their own.
constexpr uint64_t kMinVectorsOfUnalignedRow = 16;
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
// Rows up to this length are done before a second launch would have begun.
constexpr uint64_t kMinSplitRow = 4096;
// Chunks begin at multiples of this, a cache line of 4-byte elements.
constexpr uint64_t kChunkAlignment = 32;
// Threadgroups that keep a core busy while some of them wait for memory.
constexpr uint64_t kGroupsPerCore = 4;
// Positions in a grid are 32-bit, rows past this count go to the z axis.
constexpr uint64_t kMaxGridRows = uint64_t{1} << 31;
// How far past the last row or element a kernel counts before it compares: no
// kernel takes more at a time.
constexpr uint64_t kIndexOvershoot = 32768;

template <unsigned TENSORS>
using Dim = LogSoftmaxRowDim<uint64_t, TENSORS>;

// A reduction of `reduced`, for each combination of indices into `rows`.
template <unsigned TENSORS>
struct Problem {
  Dim<TENSORS> reduced{1, {}};
  // Coalesced, innermost first, no dimension of size 1.
  std::vector<Dim<TENSORS>> rows;
  uint64_t element_size; // bytes
  bool aligned; // all tensors begin where a vector may

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

struct Launch {
  std::string kernel; // host name
  std::array<uint64_t, 3> grid; // threads, as for dispatchThreads
  std::array<uint64_t, 3> group;
};

constexpr uint64_t ceil_div(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

constexpr uint64_t round_up(uint64_t a, uint64_t b) {
  return ceil_div(a, b) * b;
}

constexpr uint64_t ceil_power_of_two(uint64_t value) {
  uint64_t power = 1;
  while (power < value) {
    power *= 2;
  }
  return power;
}

// Order in memory: the first tensor's, or the next one's where that is
// expanded.
template <unsigned TENSORS>
uint64_t memory_order(const Dim<TENSORS>& dim) {
  for (const auto stride : dim.strides) {
    if (stride != 0) {
      return stride;
    }
  }
  return 0;
}

// Whether `dim` goes on where `inner` ends, in every tensor.
template <unsigned TENSORS>
bool continues(const Dim<TENSORS>& dim, const Dim<TENSORS>& inner) {
  for (size_t tensor = 0; tensor < TENSORS; ++tensor) {
    if (dim.strides[tensor] != inner.strides[tensor] * inner.size) {
      return false;
    }
  }
  return true;
}

// Sorts by stride and merges each dimension that continues its neighbour.
template <unsigned TENSORS>
std::vector<Dim<TENSORS>> coalesce(std::vector<Dim<TENSORS>> dims) {
  std::sort(dims.begin(), dims.end(), [](const auto& a, const auto& b) {
    return memory_order(a) != memory_order(b)
        ? memory_order(a) < memory_order(b)
        : a.strides < b.strides;
  });
  std::vector<Dim<TENSORS>> merged;
  for (const auto& dim : dims) {
    if (dim.size == 1) {
      continue;
    }
    if (!merged.empty() && continues(dim, merged.back())) {
      merged.back().size *= dim.size;
    } else {
      merged.push_back(dim);
    }
  }
  return merged;
}

// Of tensors with `ndim` dimensions, none of them empty; `dim` is in [0, ndim),
// and ignored where ndim is 0. The offsets, in bytes, are the tensors' in
// memory that is aligned for vectors. The tensor whose order in memory decides
// comes first.
template <unsigned TENSORS>
Problem<TENSORS> make_problem(
    const int64_t* sizes,
    const std::array<const int64_t*, TENSORS>& strides,
    int64_t ndim,
    int64_t dim,
    uint64_t element_size,
    const std::array<uint64_t, TENSORS>& offsets) {
  Problem<TENSORS> problem;
  problem.element_size = element_size;
  problem.aligned =
      std::all_of(offsets.begin(), offsets.end(), [](uint64_t offset) {
        return offset % LOG_SOFTMAX_VECTOR_BYTES == 0;
      });
  for (int64_t d = 0; d < ndim; ++d) {
    Dim<TENSORS> current{1, {}};
    if (sizes[d] != 1) {
      current.size = static_cast<uint64_t>(sizes[d]);
      for (size_t tensor = 0; tensor < TENSORS; ++tensor) {
        current.strides[tensor] = static_cast<uint64_t>(strides[tensor][d]);
      }
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
template <unsigned TENSORS>
bool reduces_innermost(const Problem<TENSORS>& problem) {
  return problem.rows.empty() ||
      memory_order(problem.reduced) <= memory_order(problem.rows.front());
}

// Of the last element of a tensor.
template <unsigned TENSORS>
uint64_t last_offset(const Problem<TENSORS>& problem, size_t tensor) {
  const auto& reduced = problem.reduced;
  uint64_t offset = (reduced.size - 1) * reduced.strides[tensor];
  for (const auto& dim : problem.rows) {
    offset += (dim.size - 1) * dim.strides[tensor];
  }
  return offset;
}

// Whether no index that a kernel computes exceeds 32 bits.
template <unsigned TENSORS>
bool can_use_u32(const Problem<TENSORS>& problem) {
  uint64_t last =
      std::max(problem.row_count(), problem.reduced.size) + kIndexOvershoot;
  for (size_t tensor = 0; tensor < TENSORS; ++tensor) {
    last = std::max(last, last_offset(problem, tensor));
  }
  return last <= std::numeric_limits<uint32_t>::max();
}

// Whether every row's first unit in a tensor, and every step from unit to unit,
// is a multiple of the vector size away from the tensor's beginning.
template <unsigned TENSORS>
bool steps_in_vectors(
    const Problem<TENSORS>& problem,
    size_t tensor,
    bool along_row) {
  const uint64_t vector = problem.vector_size();
  const auto& rows = problem.rows;
  if (!along_row &&
      (rows.empty() || problem.reduced.strides[tensor] % vector != 0)) {
    return false;
  }
  const auto& along = along_row ? problem.reduced : rows.front();
  return problem.aligned && along.strides[tensor] == 1 &&
      along.size % vector == 0 &&
      std::all_of(
             rows.begin() + (along_row ? 0 : 1),
             rows.end(),
             [&](const auto& dim) {
               return dim.strides[tensor] % vector == 0;
             });
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

// Fewer units to a thread where so few rows would leave cores idle.
inline Units spread(Units units, uint64_t rows, uint64_t cores) {
  while (units.held > 1 && rows * units.threads() <= cores * kGroupThreads &&
         units.threads() < units.max_threads) {
    units.held = ceil_div(units.held, 2);
  }
  return units;
}

// Units of neighbouring rows, side by side, that a threadgroup takes unless
// there are too few.
template <unsigned TENSORS>
uint64_t line_units(const Problem<TENSORS>& problem, uint64_t unit_size) {
  const uint64_t unit_bytes = unit_size * problem.element_size;
  uint64_t units =
      std::min<uint64_t>(kLineBytes / unit_bytes, c10::metal::simdgroup_size);
  while (units * unit_bytes > kHalfLineBytes &&
         units * unit_size * problem.reduced.size > kTileValues) {
    units /= 2;
  }
  return units;
}

template <unsigned TENSORS>
LogSoftmaxParams<uint64_t, TENSORS> make_params(
    const Problem<TENSORS>& problem,
    bool vectors) {
  LogSoftmaxParams<uint64_t, TENSORS> params{};
  std::copy(problem.rows.begin(), problem.rows.end(), params.row_dims.begin());
  params.row_ndim = static_cast<unsigned>(problem.rows.size());
  params.rows = problem.row_count();
  params.dim_size = problem.reduced.size;
  params.dim_strides = problem.reduced.strides;
  params.chunk_size = problem.reduced.size;
  params.chunks = 1;
  params.vectors = vectors;
  return params;
}

template <unsigned TENSORS>
LogSoftmaxParams<uint32_t, TENSORS> narrow(
    const LogSoftmaxParams<uint64_t, TENSORS>& params) {
  const auto to_u32 = [](uint64_t value) {
    return static_cast<uint32_t>(value);
  };
  LogSoftmaxParams<uint32_t, TENSORS> narrowed{};
  for (unsigned d = 0; d < params.row_ndim; ++d) {
    const auto& dim = params.row_dims[d];
    narrowed.row_dims[d].size = to_u32(dim.size);
    for (size_t tensor = 0; tensor < TENSORS; ++tensor) {
      narrowed.row_dims[d].strides[tensor] = to_u32(dim.strides[tensor]);
    }
  }
  for (size_t tensor = 0; tensor < TENSORS; ++tensor) {
    narrowed.dim_strides[tensor] = to_u32(params.dim_strides[tensor]);
  }
  narrowed.row_ndim = params.row_ndim;
  narrowed.vectors = params.vectors;
  narrowed.rows = to_u32(params.rows);
  narrowed.dim_size = to_u32(params.dim_size);
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

// `whole` says that rows consist of whole units, without edges.
template <unsigned TENSORS>
Launch row_launch(
    std::string kernel,
    const Problem<TENSORS>& problem,
    const Units& units,
    bool whole) {
  constexpr uint64_t simdgroup = c10::metal::simdgroup_size;
  // What vectors leave of a row at both its ends takes a thread a value.
  const uint64_t least = whole ? 1 : 2 * units.size;
  const uint64_t wanted = std::max(units.threads(), least);
  const uint64_t threads = wanted <= simdgroup ? ceil_power_of_two(wanted)
                                               : round_up(wanted, simdgroup);
  // Only rows of a single simdgroup may share a threadgroup: they need no
  // barrier.
  const uint64_t rows_per_group = threads <= simdgroup
      ? std::min(problem.row_count(), kGroupThreads / threads)
      : 1;
  const auto [rows, layers] = grid_rows(problem.row_count(), rows_per_group);
  return {
      std::move(kernel), {threads, rows, layers}, {threads, rows_per_group, 1}};
}

template <unsigned TENSORS>
Launch strided_launch(
    std::string kernel,
    const Problem<TENSORS>& problem,
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

template <unsigned TENSORS>
void split(
    LogSoftmaxParams<uint64_t, TENSORS>& params,
    uint64_t unit_size,
    uint64_t cores) {
  const uint64_t wanted = ceil_div(kGroupsPerCore * cores, params.rows);
  // At least a unit for each thread of a chunk.
  const uint64_t most = ceil_div(params.dim_size, kGroupThreads * unit_size);
  params.chunk_size = round_up(
      ceil_div(params.dim_size, std::min(wanted, most)), kChunkAlignment);
  params.chunks = ceil_div(params.dim_size, params.chunk_size);
}

} // namespace at::native::mps::log_softmax_common

#include <ATen/native/mps/kernels/LogSoftmax.h>
#include <c10/metal/reduction_utils.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>

using namespace metal;
using c10::metal::simdgroup_size;

// What to subtract ahead of exp: never -inf, so that values which are all -inf
// add nothing (exp(-inf - 0)) instead of NaN (exp(-inf - -inf)). A maximum of
// +inf stays, and makes the sum NaN as on the CPU.
static inline float exp_shift(float maximum) {
  return maximum == -INFINITY ? 0.0f : maximum;
}

static inline LogSumExp combine(LogSumExp a, LogSumExp b) {
  const float maximum = max(a.maximum, b.maximum);
  const float shift = exp_shift(maximum);
  return {
      maximum,
      a.sum * precise::exp(a.maximum - shift) +
          b.sum * precise::exp(b.maximum - shift)};
}

// Adds N values. max() may lose a NaN, the sum never does.
template <unsigned N>
static inline LogSumExp combine(
    LogSumExp acc,
    thread const float (&values)[N]) {
  float maximum = acc.maximum;
  for (unsigned i = 0; i < N; ++i) {
    maximum = max(maximum, values[i]);
  }
  const float shift = exp_shift(maximum);
  float sum = 0;
  for (unsigned i = 0; i < N; ++i) {
    sum += precise::exp(values[i] - shift);
  }
  return {maximum, acc.sum * precise::exp(acc.maximum - shift) + sum};
}

static inline LogSumExp simd_combine(LogSumExp value) {
  const float maximum = c10::metal::simd_max(value.maximum);
  const float rescale = precise::exp(value.maximum - exp_shift(maximum));
  return {maximum, c10::metal::simd_sum(value.sum * rescale)};
}

// Combines over all threads of a row; each of its simdgroups is full. Used once
// per kernel: `scratch` is not safe to write again without another barrier.
static inline LogSumExp threadgroup_combine(
    LogSumExp value,
    threadgroup LogSumExp (&scratch)[simdgroup_size],
    uint simdgroups,
    uint simdgroup,
    uint lane) {
  value = simd_combine(value);
  if (simdgroups == 1) {
    return value;
  }
  if (lane == 0) {
    scratch[simdgroup] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane < simdgroups) {
    value = scratch[lane];
  } else {
    value = {-INFINITY, 0};
  }
  return simd_combine(value);
}

// Where one thread works on a row: at first, first + step, ... below end.
template <typename idx_t>
struct Walk {
  idx_t first;
  idx_t step;
  idx_t end;
};

// Past the row's end there is -inf, which adds nothing to a sum.
template <unsigned N, typename T, typename idx_t>
static inline void load(
    thread float (&values)[N],
    device const T* row,
    idx_t stride,
    Walk<idx_t> walk) {
  for (unsigned i = 0; i < N; ++i) {
    const idx_t at = walk.first + i * walk.step;
    values[i] =
        at < walk.end ? static_cast<float>(row[at * stride]) : -INFINITY;
  }
}

// A row of nothing but -inf becomes NaN by its maximum, as on the CPU.
template <unsigned N, typename T, typename idx_t>
static inline void store(
    thread const float (&values)[N],
    float maximum,
    float log_sum,
    device T* row,
    idx_t stride,
    Walk<idx_t> walk) {
  for (unsigned i = 0; i < N; ++i) {
    const idx_t at = walk.first + i * walk.step;
    if (at < walk.end) {
      row[at * stride] = static_cast<T>((values[i] - maximum) - log_sum);
    }
  }
}

template <typename T, typename idx_t>
static inline LogSumExp accumulate(
    device const T* row,
    idx_t stride,
    Walk<idx_t> walk) {
  LogSumExp acc = {-INFINITY, 0};
  float values[LOG_SOFTMAX_LOOP_VALUES];
  for (; walk.first < walk.end;
       walk.first += LOG_SOFTMAX_LOOP_VALUES * walk.step) {
    load(values, row, stride, walk);
    acc = combine(acc, values);
  }
  return acc;
}

template <typename T, typename idx_t>
static inline void normalize(
    device const T* input,
    idx_t input_stride,
    device T* output,
    idx_t output_stride,
    LogSumExp total,
    Walk<idx_t> walk) {
  const float log_sum = precise::log(total.sum);
  float values[LOG_SOFTMAX_LOOP_VALUES];
  for (; walk.first < walk.end;
       walk.first += LOG_SOFTMAX_LOOP_VALUES * walk.step) {
    load(values, input, input_stride, walk);
    store(values, total.maximum, log_sum, output, output_stride, walk);
  }
}

template <typename idx_t>
struct RowOffsets {
  idx_t input;
  idx_t output;
};

template <typename idx_t>
static inline RowOffsets<idx_t> row_offsets(
    idx_t row,
    constant LogSoftmaxParams<idx_t>& params) {
  RowOffsets<idx_t> offsets = {0, 0};
  for (uint d = 0; d < params.row_ndim; ++d) {
    const idx_t outer = row / params.row_sizes[d];
    const idx_t index = row - outer * params.row_sizes[d];
    offsets.input += index * params.row_input_strides[d];
    offsets.output += index * params.row_output_strides[d];
    row = outer;
  }
  return offsets;
}

// Grid: (threads of a row, rows, rows past the y axis' limit). A row lies in
// the registers of whole simdgroups of one threadgroup; rows of a single
// simdgroup share a threadgroup.
template <typename T, typename idx_t>
[[kernel, max_total_threads_per_threadgroup(1024)]] void log_softmax_row(
    device const T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    constant LogSoftmaxParams<idx_t>& params [[buffer(2)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup LogSumExp scratch[simdgroup_size];
  const idx_t row = position.y + static_cast<idx_t>(grid.y) * position.z;
  if (row >= params.rows) {
    return;
  }
  const auto offsets = row_offsets(row, params);
  const Walk<idx_t> walk = {position.x, grid.x, params.dim_size};
  float values[LOG_SOFTMAX_ROW_VALUES];
  load(values, input + offsets.input, params.dim_input_stride, walk);
  const LogSumExp own = combine(LogSumExp{-INFINITY, 0}, values);
  const LogSumExp total = threadgroup_combine(
      own, scratch, grid.x / simdgroup_size, simdgroup, lane);
  store(
      values,
      total.maximum,
      precise::log(total.sum),
      output + offsets.output,
      params.dim_output_stride,
      walk);
}

template <typename idx_t>
static inline Walk<idx_t> chunk_walk(
    uint chunk,
    uint thread_index,
    uint threads,
    constant LogSoftmaxParams<idx_t>& params) {
  const idx_t begin = chunk * params.chunk_size;
  const idx_t size = min(params.chunk_size, params.dim_size - begin);
  return {begin + thread_index, threads, begin + size};
}

// Grid: (threads of a chunk, chunks, rows), a threadgroup for each chunk.
// `partials` is rows x chunks.
template <typename T, typename idx_t>
[[kernel, max_total_threads_per_threadgroup(1024)]] void log_softmax_partial(
    device const T* input [[buffer(0)]],
    device LogSumExp* partials [[buffer(1)]],
    constant LogSoftmaxParams<idx_t>& params [[buffer(2)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup LogSumExp scratch[simdgroup_size];
  const idx_t row = position.z;
  const auto offsets = row_offsets(row, params);
  const auto walk = chunk_walk(position.y, position.x, grid.x, params);
  const LogSumExp own =
      accumulate(input + offsets.input, params.dim_input_stride, walk);
  const LogSumExp total = threadgroup_combine(
      own, scratch, grid.x / simdgroup_size, simdgroup, lane);
  if (position.x == 0) {
    partials[row * params.chunks + position.y] = total;
  }
}

// Grid as log_softmax_partial's. Every threadgroup combines its row's partials
// again, which costs less than a third launch.
template <typename T, typename idx_t>
[[kernel, max_total_threads_per_threadgroup(1024)]] void log_softmax_finalize(
    device const T* input [[buffer(0)]],
    device const LogSumExp* partials [[buffer(1)]],
    device T* output [[buffer(2)]],
    constant LogSoftmaxParams<idx_t>& params [[buffer(3)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup LogSumExp scratch[simdgroup_size];
  const idx_t row = position.z;
  LogSumExp own = {-INFINITY, 0};
  for (idx_t chunk = position.x; chunk < params.chunks; chunk += grid.x) {
    own = combine(own, partials[row * params.chunks + chunk]);
  }
  const LogSumExp total = threadgroup_combine(
      own, scratch, grid.x / simdgroup_size, simdgroup, lane);
  const auto offsets = row_offsets(row, params);
  normalize(
      input + offsets.input,
      params.dim_input_stride,
      output + offsets.output,
      params.dim_output_stride,
      total,
      chunk_walk(position.y, position.x, grid.x, params));
}

// Grid: (rows, slices, rows past the x axis' limit). A threadgroup takes
// group.x neighbouring rows; group.y threads, a power of two, share each of
// them.
template <typename T, typename idx_t>
[[kernel, max_total_threads_per_threadgroup(1024)]] void log_softmax(
    device const T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    constant LogSoftmaxParams<idx_t>& params [[buffer(2)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint3 local [[thread_position_in_threadgroup]],
    uint3 group [[threads_per_threadgroup]]) {
  threadgroup LogSumExp scratch[LOG_SOFTMAX_MAX_THREADS];
  const idx_t row = position.x + static_cast<idx_t>(grid.x) * position.z;
  // The grid is padded to whole threadgroups: a padding row has no elements.
  const bool padding = row >= params.rows;
  const auto offsets = row_offsets(padding ? idx_t(0) : row, params);
  const Walk<idx_t> walk = {
      local.y, group.y, padding ? idx_t(0) : params.dim_size};

  const uint own = local.y * group.x + local.x;
  scratch[own] =
      accumulate(input + offsets.input, params.dim_input_stride, walk);
  for (uint slices = group.y / 2; slices > 0; slices /= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (local.y < slices) {
      scratch[own] = combine(scratch[own], scratch[own + slices * group.x]);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const LogSumExp total = scratch[local.x];
  normalize(
      input + offsets.input,
      params.dim_input_stride,
      output + offsets.output,
      params.dim_output_stride,
      total,
      walk);
}

#define REGISTER_KERNEL(NAME, KERNEL, T, IDX) \
  template                                    \
      [[host_name(NAME)]] [[kernel]] decltype(KERNEL<T, IDX>) KERNEL<T, IDX>

#define REGISTER_LOG_SOFTMAX(T, IDX, ID)                                     \
  REGISTER_KERNEL("log_softmax_row_" ID, log_softmax_row, T, IDX);           \
  REGISTER_KERNEL("log_softmax_partial_" ID, log_softmax_partial, T, IDX);   \
  REGISTER_KERNEL("log_softmax_finalize_" ID, log_softmax_finalize, T, IDX); \
  REGISTER_KERNEL("log_softmax_" ID, log_softmax, T, IDX)

REGISTER_LOG_SOFTMAX(float, uint, "float_u32");
REGISTER_LOG_SOFTMAX(float, ulong, "float_u64");
REGISTER_LOG_SOFTMAX(half, uint, "half_u32");
REGISTER_LOG_SOFTMAX(half, ulong, "half_u64");
REGISTER_LOG_SOFTMAX(bfloat, uint, "bfloat_u32");
REGISTER_LOG_SOFTMAX(bfloat, ulong, "bfloat_u64");

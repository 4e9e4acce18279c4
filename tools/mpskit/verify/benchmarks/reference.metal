// The reference design: each row is read three times, for its maximum, for its sum and for the
// result, one element at a time; the backward's grad twice, for its sum and for the result. What the
// kernels of the patch are measured against.
#include <metal_stdlib>
#include <c10/metal/reduction_utils.h>

using namespace metal;
using c10::metal::simdgroup_size;
using c10::metal::threadgroup_max;
using c10::metal::threadgroup_sum;

// Sizes and strides are in elements. A row is split into `chunks` of `chunk_size`.
struct Params {
  uint dim_size;
  uint dim_stride;
  uint inner_size; // rows with neighbouring first elements
  uint inner_stride;
  uint outer_stride;
  uint chunk_size;
  uint chunks;
};

static inline uint row_offset(uint row, constant Params& params) {
  return row / params.inner_size * params.outer_stride +
      row % params.inner_size * params.inner_stride;
}

template <typename T>
static inline float range_max(
    device const T* row,
    uint stride,
    uint begin,
    uint end,
    threadgroup float* scratch,
    uint thread_index,
    uint threads) {
  float maximum = -INFINITY;
  for (uint i = begin + thread_index; i < end; i += threads) {
    maximum = c10::metal::max(maximum, float(row[i * stride]));
  }
  maximum = threadgroup_max(scratch, maximum, thread_index, threads);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return maximum;
}

template <typename T>
static inline float range_sum(
    device const T* row,
    uint stride,
    uint begin,
    uint end,
    float shift,
    threadgroup float* scratch,
    uint thread_index,
    uint threads) {
  float sum = 0;
  for (uint i = begin + thread_index; i < end; i += threads) {
    sum += precise::exp(float(row[i * stride]) - shift);
  }
  sum = threadgroup_sum(scratch, sum, thread_index, threads);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return sum;
}

static inline float shift_of(float maximum) {
  return maximum == -INFINITY ? 0.0f : maximum;
}

// One threadgroup a row.
template <typename T>
kernel void reference_row(
    device const T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    constant Params& params [[buffer(2)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup float scratch[simdgroup_size];
  const uint offset = row_offset(row, params);
  const uint stride = params.dim_stride;
  const uint end = params.dim_size;
  const float maximum =
      range_max(input + offset, stride, 0, end, scratch, thread_index, threads);
  const float sum = range_sum(
      input + offset, stride, 0, end, shift_of(maximum), scratch, thread_index, threads);
  const float log_sum = precise::log(sum);
  for (uint i = thread_index; i < end; i += threads) {
    const uint at = offset + i * stride;
    output[at] = T((float(input[at]) - maximum) - log_sum);
  }
}

// One threadgroup a chunk; `partials` is rows x chunks of (maximum, sum).
template <typename T>
kernel void reference_partial(
    device const T* input [[buffer(0)]],
    device float2* partials [[buffer(1)]],
    constant Params& params [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 position [[thread_position_in_threadgroup]],
    uint2 size [[threads_per_threadgroup]]) {
  threadgroup float scratch[simdgroup_size];
  device const T* row = input + row_offset(group.y, params);
  const uint begin = group.x * params.chunk_size;
  const uint end = min(begin + params.chunk_size, params.dim_size);
  const float maximum =
      range_max(row, params.dim_stride, begin, end, scratch, position.x, size.x);
  const float sum = range_sum(
      row, params.dim_stride, begin, end, shift_of(maximum), scratch, position.x, size.x);
  if (position.x == 0) {
    partials[group.y * params.chunks + group.x] = float2(maximum, sum);
  }
}

template <typename T>
kernel void reference_finalize(
    device const T* input [[buffer(0)]],
    device const float2* partials [[buffer(1)]],
    device T* output [[buffer(2)]],
    constant Params& params [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 position [[thread_position_in_threadgroup]],
    uint2 size [[threads_per_threadgroup]]) {
  device const float2* own = partials + group.y * params.chunks;
  float maximum = -INFINITY;
  for (uint chunk = 0; chunk < params.chunks; ++chunk) {
    maximum = c10::metal::max(maximum, own[chunk].x);
  }
  float sum = 0;
  for (uint chunk = 0; chunk < params.chunks; ++chunk) {
    sum += own[chunk].y * precise::exp(own[chunk].x - shift_of(maximum));
  }
  const float log_sum = precise::log(sum);
  const uint offset = row_offset(group.y, params);
  const uint begin = group.x * params.chunk_size;
  const uint end = min(begin + params.chunk_size, params.dim_size);
  for (uint i = begin + position.x; i < end; i += size.x) {
    const uint at = offset + i * params.dim_stride;
    output[at] = T((float(input[at]) - maximum) - log_sum);
  }
}

// One threadgroup a row. All tensors lie as grad does.
template <typename T>
kernel void reference_backward_row(
    device const T* grad [[buffer(0)]],
    device const T* output [[buffer(1)]],
    device T* grad_input [[buffer(2)]],
    constant Params& params [[buffer(3)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup float scratch[simdgroup_size];
  const uint offset = row_offset(row, params);
  float sum = 0;
  for (uint i = thread_index; i < params.dim_size; i += threads) {
    sum += float(grad[offset + i * params.dim_stride]);
  }
  sum = threadgroup_sum(scratch, sum, thread_index, threads);
  for (uint i = thread_index; i < params.dim_size; i += threads) {
    const uint at = offset + i * params.dim_stride;
    grad_input[at] = T(float(grad[at]) - precise::exp(float(output[at])) * sum);
  }
}

#define REGISTER(KERNEL, T) \
  template [[host_name(#KERNEL "_" #T)]] [[kernel]] decltype(KERNEL<T>) KERNEL<T>

#define REGISTER_ALL(T)            \
  REGISTER(reference_row, T);      \
  REGISTER(reference_partial, T);  \
  REGISTER(reference_finalize, T); \
  REGISTER(reference_backward_row, T)

REGISTER_ALL(float);
REGISTER_ALL(half);
REGISTER_ALL(bfloat);

#include <ATen/native/mps/kernels/${Name}.h>
#include <c10/metal/reduction_utils.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>

using namespace metal;
using namespace c10::metal;

// Where the row `index` of an argument begins.
template <typename idx_t, unsigned ARGUMENTS>
idx_t row_offset(
    unsigned argument,
    idx_t index,
    constant ${Name}Params<idx_t, ARGUMENTS>& params) {
  idx_t offset = 0;
  for (unsigned d = 0; d < params.row_ndim; ++d) {
    offset += index % params.row_sizes[d] * params.row_strides[argument][d];
    index /= params.row_sizes[d];
  }
  return offset;
}

// ${about}. A threadgroup takes a row; all of its simdgroups are whole.
template <typename T, typename idx_t>
[[kernel]] void ${name}(
    constant T* input [[buffer(0)]],
    constant bool* mask [[buffer(1)]],
    device T* output [[buffer(2)]],
    constant ${Name}Params<idx_t, 3>& params [[buffer(3)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint3 threads [[threads_per_threadgroup]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  threadgroup float maxima[simdgroup_size];
  threadgroup float sums[simdgroup_size];
  const auto row = static_cast<idx_t>(group.z) * groups.y + group.y;
  if (row >= params.rows) {
    return;
  }
  input += row_offset(0, row, params);
  mask += row_offset(1, row, params);
  output += row_offset(2, row, params);

  float maximum = -INFINITY;
  for (idx_t i = thread_index; i < params.size; i += threads.x) {
    if (!mask[i * params.strides[1]]) {
      maximum = ::metal::max(maximum, float(input[i * params.strides[0]]));
    }
  }
  maximum = threadgroup_max(maxima, maximum, thread_index, threads.x);

  float sum = 0;
  for (idx_t i = thread_index; i < params.size; i += threads.x) {
    if (!mask[i * params.strides[1]]) {
      sum += exp(float(input[i * params.strides[0]]) - maximum);
    }
  }
  sum = threadgroup_sum(sums, sum, thread_index, threads.x);

  for (idx_t i = thread_index; i < params.size; i += threads.x) {
    const auto x = float(input[i * params.strides[0]]);
    const auto share = mask[i * params.strides[1]] ? 0 : exp(x - maximum);
    output[i * params.strides[2]] = static_cast<T>(share / sum);
  }
}

// Its gradient, from the gradient of the result and the result.
template <typename T, typename idx_t>
[[kernel]] void ${name}_backward(
    constant T* grad_output [[buffer(0)]],
    constant T* output [[buffer(1)]],
    constant bool* mask [[buffer(2)]],
    device T* grad_input [[buffer(3)]],
    constant ${Name}Params<idx_t, 4>& params [[buffer(4)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint3 threads [[threads_per_threadgroup]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  threadgroup float sums[simdgroup_size];
  const auto row = static_cast<idx_t>(group.z) * groups.y + group.y;
  if (row >= params.rows) {
    return;
  }
  grad_output += row_offset(0, row, params);
  output += row_offset(1, row, params);
  mask += row_offset(2, row, params);
  grad_input += row_offset(3, row, params);

  float sum = 0;
  for (idx_t i = thread_index; i < params.size; i += threads.x) {
    if (!mask[i * params.strides[2]]) {
      sum += float(grad_output[i * params.strides[0]]) *
          float(output[i * params.strides[1]]);
    }
  }
  sum = threadgroup_sum(sums, sum, thread_index, threads.x);

  for (idx_t i = thread_index; i < params.size; i += threads.x) {
    const auto grad = float(grad_output[i * params.strides[0]]);
    const auto share = float(output[i * params.strides[1]]);
    grad_input[i * params.strides[3]] = static_cast<T>(
        mask[i * params.strides[2]] ? 0 : share * (grad - sum));
  }
}

#define REGISTER_${NAME}(DTYPE, IDX_T, SUFFIX) \
  template [[host_name("${name}_" #DTYPE "_" #SUFFIX)]] \
  [[kernel]] void ${name}<DTYPE, IDX_T>( \
      constant DTYPE * input [[buffer(0)]], \
      constant bool* mask [[buffer(1)]], \
      device DTYPE* output [[buffer(2)]], \
      constant ${Name}Params<IDX_T, 3> & params [[buffer(3)]], \
      uint3 group [[threadgroup_position_in_grid]], \
      uint3 groups [[threadgroups_per_grid]], \
      uint3 threads [[threads_per_threadgroup]], \
      uint thread_index [[thread_index_in_threadgroup]]); \
  template [[host_name("${name}_backward_" #DTYPE "_" #SUFFIX)]] \
  [[kernel]] void ${name}_backward<DTYPE, IDX_T>( \
      constant DTYPE * grad_output [[buffer(0)]], \
      constant DTYPE * output [[buffer(1)]], \
      constant bool* mask [[buffer(2)]], \
      device DTYPE* grad_input [[buffer(3)]], \
      constant ${Name}Params<IDX_T, 4> & params [[buffer(4)]], \
      uint3 group [[threadgroup_position_in_grid]], \
      uint3 groups [[threadgroups_per_grid]], \
      uint3 threads [[threads_per_threadgroup]], \
      uint thread_index [[thread_index_in_threadgroup]]);

#define REGISTER_${NAME}_KERNELS(DTYPE) \
  REGISTER_${NAME}(DTYPE, uint, u32) \
  REGISTER_${NAME}(DTYPE, ulong, u64)

REGISTER_${NAME}_KERNELS(float);
REGISTER_${NAME}_KERNELS(half);
REGISTER_${NAME}_KERNELS(bfloat);

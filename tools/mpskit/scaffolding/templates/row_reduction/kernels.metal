#include <ATen/native/mps/kernels/${Name}.h>
#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>

using namespace metal;
using namespace c10::metal;

// ${about}, in float32. A state stands for some of a row's elements.
struct ${name}_functor {
  using state_t = ${state};

  static state_t identity() {
    return ${identity};
  }

  static state_t element(const float x) {
    return ${element};
  }

  static state_t combine(const state_t a, const state_t b) {
    ${combine}
  }

  static float finish(const state_t state) {
    return ${finish};
  }
};

template <typename idx_t>
struct ${Name}Row {
  idx_t input;
  idx_t output;

  ${Name}Row(idx_t row, constant ${Name}Params<idx_t>& params)
      : input(0), output(0) {
    for (unsigned d = 0; d < params.row_ndim; ++d) {
      const idx_t place = row % params.row_sizes[d];
      row /= params.row_sizes[d];
      input += place * params.row_input_strides[d];
      output += place * params.row_output_strides[d];
    }
  }
};

// Where the element `index` of a row lies, from the row's first.
template <typename idx_t>
idx_t offset_in_row(idx_t index, constant ${Name}Params<idx_t>& params) {
  idx_t offset = 0;
  unsigned d = 0;
  for (; d + 1 < params.reduced_ndim; ++d) {
    offset += index % params.reduced_sizes[d] * params.reduced_strides[d];
    index /= params.reduced_sizes[d];
  }
  return offset + index * params.reduced_strides[d];
}

// The state of every `step`-th element of a row, from `first` on.
template <typename F, typename T, typename idx_t>
typename F::state_t reduce_elements(
    constant T* row,
    idx_t first,
    idx_t step,
    constant ${Name}Params<idx_t>& params) {
  auto state = F::identity();
  for (idx_t i = first; i < params.size; i += step) {
    const auto x = static_cast<float>(row[offset_in_row(i, params)]);
    state = F::combine(state, F::element(x));
  }
  return state;
}

template <typename F>
typename F::state_t reduce_simdgroup(typename F::state_t state) {
  for (ushort step = simdgroup_size / 2; step > 0; step /= 2) {
    state = F::combine(state, simd_shuffle_xor(state, step));
  }
  return state;
}

// A threadgroup takes a row. All of its simdgroups are whole.
template <typename F, typename T, typename idx_t>
[[kernel]] void ${name}_row(
    constant T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    constant ${Name}Params<idx_t>& params [[buffer(2)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint3 threads [[threads_per_threadgroup]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup typename F::state_t states[simdgroup_size];
  const auto index = static_cast<idx_t>(group.z) * groups.y + group.y;
  if (index >= params.rows) {
    return;
  }
  const ${Name}Row<idx_t> row(index, params);
  auto state = reduce_elements<F>(
      input + row.input,
      static_cast<idx_t>(thread_index),
      static_cast<idx_t>(threads.x),
      params);
  state = reduce_simdgroup<F>(state);
  if (lane == 0) {
    states[simdgroup] = state;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup == 0) {
    state = reduce_simdgroup<F>(
        lane < simdgroups ? states[lane] : F::identity());
    if (lane == 0) {
      output[row.output] = static_cast<T>(F::finish(state));
    }
  }
}

// A thread takes a row, its neighbour the one beside it.
template <typename F, typename T, typename idx_t>
[[kernel]] void ${name}_column(
    constant T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    constant ${Name}Params<idx_t>& params [[buffer(2)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]]) {
  const auto index = static_cast<idx_t>(position.y) * grid.x + position.x;
  if (index >= params.rows) {
    return;
  }
  const ${Name}Row<idx_t> row(index, params);
  const auto state =
      reduce_elements<F>(input + row.input, idx_t(0), idx_t(1), params);
  output[row.output] = static_cast<T>(F::finish(state));
}

#define REGISTER_${NAME}(DTYPE, IDX_T, SUFFIX) \
  template [[host_name("${name}_row_" #DTYPE "_" #SUFFIX)]] \
  [[kernel]] void ${name}_row<${name}_functor, DTYPE, IDX_T>( \
      constant DTYPE * input [[buffer(0)]], \
      device DTYPE * output [[buffer(1)]], \
      constant ${Name}Params<IDX_T> & params [[buffer(2)]], \
      uint3 group [[threadgroup_position_in_grid]], \
      uint3 groups [[threadgroups_per_grid]], \
      uint3 threads [[threads_per_threadgroup]], \
      uint thread_index [[thread_index_in_threadgroup]], \
      uint lane [[thread_index_in_simdgroup]], \
      uint simdgroup [[simdgroup_index_in_threadgroup]], \
      uint simdgroups [[simdgroups_per_threadgroup]]); \
  template [[host_name("${name}_column_" #DTYPE "_" #SUFFIX)]] \
  [[kernel]] void ${name}_column<${name}_functor, DTYPE, IDX_T>( \
      constant DTYPE * input [[buffer(0)]], \
      device DTYPE * output [[buffer(1)]], \
      constant ${Name}Params<IDX_T> & params [[buffer(2)]], \
      uint3 position [[thread_position_in_grid]], \
      uint3 grid [[threads_per_grid]]);

#define REGISTER_${NAME}_KERNELS(DTYPE) \
  REGISTER_${NAME}(DTYPE, uint, u32) \
  REGISTER_${NAME}(DTYPE, ulong, u64)

REGISTER_${NAME}_KERNELS(float);
REGISTER_${NAME}_KERNELS(half);
REGISTER_${NAME}_KERNELS(bfloat);

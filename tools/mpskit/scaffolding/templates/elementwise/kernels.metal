#include <ATen/native/mps/kernels/${Name}.h>
#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>

using namespace metal;
using namespace c10::metal;

// ${about} of one element, in float32.
struct ${name}_functor {
  float operator()(const float x) const {
    return ${formula};
  }
};

// The grid has layers, because no side of it may have more than 2^32 threads.
template <typename idx_t>
idx_t index_in_grid(uint2 position, uint2 grid) {
  return static_cast<idx_t>(position.y) * grid.x + position.x;
}

template <typename T>
T ${name}_of(T x) {
  return static_cast<T>(${name}_functor()(static_cast<float>(x)));
}

// Input and output lie in memory in the same order, without gaps.
template <typename T, typename idx_t>
[[kernel]] void ${name}_dense(
    constant T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    constant ${Name}Params<idx_t>& params [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const auto index = index_in_grid<idx_t>(position, grid);
  if (index < params.numel) {
    output[index] = ${name}_of(input[index]);
  }
}

template <typename T, typename idx_t>
[[kernel]] void ${name}_strided(
    constant T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    constant ${Name}Params<idx_t>& params [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  auto index = index_in_grid<idx_t>(position, grid);
  if (index >= params.numel) {
    return;
  }
  idx_t input_offset = 0;
  idx_t output_offset = 0;
  for (unsigned d = 0; d < params.ndim; ++d) {
    const idx_t place = index % params.sizes[d];
    index /= params.sizes[d];
    input_offset += place * params.input_strides[d];
    output_offset += place * params.output_strides[d];
  }
  output[output_offset] = ${name}_of(input[input_offset]);
}

#define REGISTER_${NAME}(KERNEL, DTYPE, IDX_T, SUFFIX)             \
  template [[host_name(#KERNEL "_" #DTYPE "_" #SUFFIX)]]           \
  [[kernel]] void KERNEL<DTYPE, IDX_T>(                            \
      constant DTYPE * input [[buffer(0)]],                        \
      device DTYPE * output [[buffer(1)]],                         \
      constant ${Name}Params<IDX_T> & params [[buffer(2)]],        \
      uint2 position [[thread_position_in_grid]],                  \
      uint2 grid [[threads_per_grid]]);

#define REGISTER_${NAME}_KERNELS(DTYPE)                 \
  REGISTER_${NAME}(${name}_dense, DTYPE, uint, u32)     \
  REGISTER_${NAME}(${name}_dense, DTYPE, ulong, u64)    \
  REGISTER_${NAME}(${name}_strided, DTYPE, uint, u32)   \
  REGISTER_${NAME}(${name}_strided, DTYPE, ulong, u64)

REGISTER_${NAME}_KERNELS(float);
REGISTER_${NAME}_KERNELS(half);
REGISTER_${NAME}_KERNELS(bfloat);

#pragma once

// How log_softmax and its backward put a plan's launches on the GPU.

#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/native/mps/operations/LogSoftmaxPlanCommon.h>

namespace at::native::mps::log_softmax_common {

inline uint64_t byte_offset(const Tensor& tensor) {
  return static_cast<uint64_t>(tensor.storage_offset() * tensor.element_size());
}

// Rows are written while others are still to be read, so memory may be shared
// only element by element.
inline bool overlaps_differently(const Tensor& input, const Tensor& output) {
  const auto same_elements = input.storage_offset() == output.storage_offset() && input.strides() == output.strides();
  return input.is_alias_of(output) && !same_elements;
}

// Binds the tensors, then the plan's parameters.
template <typename Plan, typename... Tensors>
void encode_launch(MetalShaderLibrary& library,
                   id<MTLComputeCommandEncoder> encoder,
                   const Launch& launch,
                   const Plan& plan,
                   const Tensor& input,
                   const Tensors&... others) {
  const auto pso = library.getPipelineStateForFunc(launch.kernel);
  getMPSProfiler().beginProfileKernel(pso, launch.kernel, {input});
  [encoder setComputePipelineState:pso];
  if (plan.use_u32) {
    mtl_setArgs(encoder, input, others..., narrow(plan.params));
  } else {
    mtl_setArgs(encoder, input, others..., plan.params);
  }
  const auto& grid = launch.grid;
  const auto& group = launch.group;
  [encoder dispatchThreads:MTLSizeMake(grid[0], grid[1], grid[2])
      threadsPerThreadgroup:MTLSizeMake(group[0], group[1], group[2])];
  getMPSProfiler().endProfileKernel(pso);
}

} // namespace at::native::mps::log_softmax_common

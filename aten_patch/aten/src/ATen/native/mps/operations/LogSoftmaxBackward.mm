#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/WrapDimUtils.h>
#include <ATen/mps/MPSDevice.h>
#include <ATen/native/mps/operations/LogSoftmaxBackwardPlan.h>
#include <ATen/native/mps/operations/LogSoftmaxLaunch.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/_log_softmax_backward_data_native.h>
#include <ATen/ops/empty.h>
#endif

namespace at::native {

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/LogSoftmaxBackward_metallib.h>
#endif

namespace mps {

static log_softmax_backward::Plan plan_log_softmax_backward(const Tensor& grad,
                                                            const Tensor& output,
                                                            int64_t dim,
                                                            const Tensor& grad_input) {
  using namespace log_softmax_backward;
  const auto problem = make_problem(output.sizes().data(),
                                    grad.strides().data(),
                                    output.strides().data(),
                                    grad_input.strides().data(),
                                    output.dim(),
                                    maybe_wrap_dim(dim, output.dim()),
                                    output.element_size(),
                                    byte_offset(grad),
                                    byte_offset(output),
                                    byte_offset(grad_input));
  const auto cores = std::max(1u, MPSDevice::getInstance()->getCoreCount());
  return make_plan(
      problem, scalarToMetalTypeString(output), cores, choose_kernel(problem, cores), can_use_u32(problem));
}

} // namespace mps

TORCH_IMPL_FUNC(log_softmax_backward_mps_out)
(const Tensor& grad, const Tensor& output, int64_t dim, ScalarType input_dtype, const Tensor& grad_input) {
  using namespace mps;
  using namespace mps::log_softmax_backward;
  TORCH_CHECK(grad.scalar_type() == input_dtype && output.scalar_type() == input_dtype,
              "log_softmax_backward with float to half conversion is not supported on MPS");
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(grad), "\"log_softmax_backward\" not implemented for '", grad.scalar_type(), "'");
  TORCH_CHECK(grad.dim() <= c10::metal::max_ndim,
              "log_softmax_backward supports tensors with at most ",
              c10::metal::max_ndim,
              " dimensions on MPS, but got ",
              grad.dim());
  if (grad.numel() == 0) {
    return;
  }

  const auto read_grad = overlaps_differently(grad, grad_input) ? grad.clone() : grad;
  const auto read_output = overlaps_differently(output, grad_input) ? output.clone() : output;
  const auto plan = plan_log_softmax_backward(read_grad, read_output, dim, grad_input);
  const auto partials =
      plan.partials == 0 ? Tensor() : at::empty({static_cast<int64_t>(plan.partials)}, grad.options().dtype(kFloat));

  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      const auto encoder = stream->commandEncoder();
      if (plan.kernel == Kernel::Split) {
        encode_launch(lib, encoder, plan.launches[0], plan, read_grad, partials);
        encode_launch(lib, encoder, plan.launches[1], plan, read_grad, read_output, partials, grad_input);
      } else {
        encode_launch(lib, encoder, plan.launches[0], plan, read_grad, read_output, grad_input);
      }
    }
  });
}

} // namespace at::native

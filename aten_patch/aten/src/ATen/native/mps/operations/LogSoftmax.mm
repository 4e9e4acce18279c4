#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/WrapDimUtils.h>
#include <ATen/mps/MPSDevice.h>
#include <ATen/native/mps/operations/LogSoftmaxLaunch.h>
#include <ATen/native/mps/operations/LogSoftmaxPlan.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/_log_softmax_native.h>
#include <ATen/ops/empty.h>
#endif

namespace at::native {

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/LogSoftmax_metallib.h>
#endif

namespace mps {

static log_softmax::Plan plan_log_softmax(const Tensor& self, int64_t dim, const Tensor& out) {
  const auto problem = log_softmax::make_problem(self.sizes().data(),
                                                 self.strides().data(),
                                                 out.strides().data(),
                                                 self.dim(),
                                                 maybe_wrap_dim(dim, self.dim()),
                                                 self.element_size(),
                                                 log_softmax::byte_offset(self),
                                                 log_softmax::byte_offset(out));
  const auto cores = std::max(1u, MPSDevice::getInstance()->getCoreCount());
  return log_softmax::make_plan(problem,
                                scalarToMetalTypeString(self),
                                cores,
                                log_softmax::choose_kernel(problem, cores),
                                log_softmax::can_use_u32(problem));
}

} // namespace mps

TORCH_IMPL_FUNC(log_softmax_mps_out)
(const Tensor& self, const int64_t dim, const bool half_to_float, const Tensor& out) {
  using namespace mps;
  TORCH_CHECK(!half_to_float, "log_softmax with half to float conversion is not supported on MPS");
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(self), "\"log_softmax\" not implemented for '", self.scalar_type(), "'");
  TORCH_CHECK(self.dim() <= c10::metal::max_ndim,
              "log_softmax supports tensors with at most ",
              c10::metal::max_ndim,
              " dimensions on MPS, but got ",
              self.dim());
  if (self.numel() == 0) {
    return;
  }

  const auto input = log_softmax::overlaps_differently(self, out) ? self.clone() : self;
  const auto plan = plan_log_softmax(input, dim, out);
  const auto partials =
      plan.partials == 0 ? Tensor() : at::empty({static_cast<int64_t>(plan.partials), 2}, self.options().dtype(kFloat));

  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      const auto encoder = stream->commandEncoder();
      if (plan.kernel == log_softmax::Kernel::Split) {
        log_softmax::encode_launch(lib, encoder, plan.launches[0], plan, input, partials);
        log_softmax::encode_launch(lib, encoder, plan.launches[1], plan, input, partials, out);
      } else {
        log_softmax::encode_launch(lib, encoder, plan.launches[0], plan, input, out);
      }
    }
  });
}

} // namespace at::native

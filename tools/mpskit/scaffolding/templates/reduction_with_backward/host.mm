#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/WrapDimUtils.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/native/mps/operations/${Name}Plan.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/${backward_root}_native.h>
#include <ATen/ops/${root}_native.h>
#include <ATen/ops/empty_like.h>
#endif

namespace at::native {

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/${Name}_metallib.h>
#endif

namespace mps {

// Launches the kernel `name` on the rows along `dim`; the last argument is the one that it writes.
template <typename... Tensors>
static void encode_rows(const std::string& name, int64_t dim, const Tensor& first, const Tensors&... others) {
  const auto reduced = first.dim() == 0 ? 0 : uint64_t{1} << dim;
  const auto problem = ${name}::make_problem<1 + sizeof...(others)>(
      first.sizes().data(), {first.strides().data(), others.strides().data()...}, first.dim(), reduced);
  const auto plan = ${name}::make_plan(problem, name, scalarToMetalTypeString(first));
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      const auto encoder = stream->commandEncoder();
      const auto pso = lib.getPipelineStateForFunc(plan.launch.kernel);
      getMPSProfiler().beginProfileKernel(pso, plan.launch.kernel, {first});
      [encoder setComputePipelineState:pso];
      if (plan.use_u32) {
        mtl_setArgs(encoder, first, others..., ${name}::make_params<uint32_t>(problem));
      } else {
        mtl_setArgs(encoder, first, others..., ${name}::make_params<uint64_t>(problem));
      }
      const auto& grid = plan.launch.grid;
      const auto& group = plan.launch.group;
      [encoder dispatchThreads:MTLSizeMake(grid[0], grid[1], grid[2])
          threadsPerThreadgroup:MTLSizeMake(group[0], group[1], group[2])];
      getMPSProfiler().endProfileKernel(pso);
    }
  });
}

// A mask of the input's size. Type 0 is one of (L, L) for every row, type 1 one of (B, L) for keys.
static Tensor expand_mask(const Tensor& self, const Tensor& mask, std::optional<int64_t> mask_type) {
  TORCH_CHECK(mask.scalar_type() == kBool, "Mask should be a boolean tensor");
  if (mask.dim() != 2 || self.dim() != 4 || mask_type == 2) {
    TORCH_CHECK(self.sizes() == mask.sizes(), "For mask_type == 2 mask shape should match input shape");
    return mask;
  }
  TORCH_CHECK(mask_type == 0 || mask_type == 1, "Mask Type should be 0 (src_mask), 1 (src_key_padding_mask) or 2");
  return (mask_type == 0 ? mask : mask.unsqueeze(1).unsqueeze(1)).expand(self.sizes());
}

static void check_supported(const Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(self), "\"${name}\" not implemented for '", self.scalar_type(), "'");
  TORCH_CHECK(self.dim() <= c10::metal::max_ndim,
              "${name} supports tensors with at most ",
              c10::metal::max_ndim,
              " dimensions on MPS, but got ",
              self.dim());
}

} // namespace mps

Tensor ${function}(const Tensor& self,
                          const Tensor& mask,
                          std::optional<int64_t> dim,
                          std::optional<int64_t> mask_type) {
  mps::check_supported(self);
  const auto output = at::empty_like(self);
  const auto wrapped_dim = maybe_wrap_dim(dim.value_or(-1), self.dim());
  const auto expanded_mask = mps::expand_mask(self, mask, mask_type);
  if (self.numel() != 0) {
    mps::encode_rows("${name}", wrapped_dim, self, expanded_mask, output);
  }
  return output;
}

Tensor ${backward_function}(const Tensor& grad_output,
                                   const Tensor& output,
                                   const Tensor& mask,
                                   std::optional<int64_t> dim) {
  mps::check_supported(grad_output);
  TORCH_CHECK(grad_output.sizes() == mask.sizes(), "Mask shape should match grad shape");
  const auto grad_input = at::empty_like(grad_output);
  const auto wrapped_dim = maybe_wrap_dim(dim.value_or(-1), grad_output.dim());
  if (grad_output.numel() != 0) {
    mps::encode_rows("${name}_backward", wrapped_dim, grad_output, output, mask, grad_input);
  }
  return grad_input;
}

} // namespace at::native

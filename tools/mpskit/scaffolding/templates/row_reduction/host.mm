#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/native/mps/operations/${Name}Plan.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/${root}_native.h>
#include <ATen/ops/empty.h>
#endif

namespace at::native {

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/${Name}_metallib.h>
#endif

namespace mps {

// By dimension of the input, 0 where it is reduced.
static std::vector<int64_t> strides_of_output(const Tensor& input, const Tensor& output, DimMask mask, bool keepdim) {
  std::vector<int64_t> strides;
  int64_t d = 0;
  for (const auto i : c10::irange(input.dim())) {
    strides.push_back(mask[i] ? 0 : output.stride(d));
    d += !mask[i] || keepdim;
  }
  return strides;
}

static void encode_${name}(const Tensor& input, const Tensor& output, DimMask mask, bool keepdim) {
  const auto output_strides = strides_of_output(input, output, mask, keepdim);
  const auto problem = ${name}::make_problem(
      input.sizes().data(), {input.strides().data(), output_strides.data()}, input.dim(), mask.to_ulong());
  const auto plan = ${name}::make_plan(problem, scalarToMetalTypeString(output));
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      const auto encoder = stream->commandEncoder();
      const auto pso = lib.getPipelineStateForFunc(plan.launch.kernel);
      getMPSProfiler().beginProfileKernel(pso, plan.launch.kernel, {input});
      [encoder setComputePipelineState:pso];
      if (plan.use_u32) {
        mtl_setArgs(encoder, input, output, ${name}::make_params<uint32_t>(problem));
      } else {
        mtl_setArgs(encoder, input, output, ${name}::make_params<uint64_t>(problem));
      }
      const auto& grid = plan.launch.grid;
      const auto& group = plan.launch.group;
      [encoder dispatchThreads:MTLSizeMake(grid[0], grid[1], grid[2])
          threadsPerThreadgroup:MTLSizeMake(group[0], group[1], group[2])];
      getMPSProfiler().endProfileKernel(pso);
    }
  });
}

} // namespace mps

Tensor& ${function}(const Tensor& self, IntArrayRef dim, bool keepdim, Tensor& out) {
  using namespace mps;
  const auto dtype = isIntegralType(self.scalar_type(), /*includeBool=*/true)
      ? typeMetaToScalarType(c10::get_default_dtype())
      : self.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(supportedFloatingType(dtype), "\"${name}\" not implemented for '", dtype, "'");
  TORCH_CHECK(self.dim() <= c10::metal::max_ndim,
              "${name} supports tensors with at most ",
              c10::metal::max_ndim,
              " dimensions on MPS, but got ",
              self.dim());
  const auto mask = make_dim_mask(dim, self.dim());
  resize_output(out, shape_from_dim_mask(self, mask, keepdim));
  if (out.numel() == 0) {
    return out;
  }
  const auto input = out.is_alias_of(self) ? self.clone() : self.to(dtype);
  const auto output = out.scalar_type() == dtype ? out : at::empty(out.sizes(), out.options().dtype(dtype));
  encode_${name}(input, output, mask, keepdim);
  if (!output.is_same(out)) {
    out.copy_(output);
  }
  return out;
}

} // namespace at::native

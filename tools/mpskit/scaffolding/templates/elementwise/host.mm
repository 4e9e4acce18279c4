#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/native/mps/operations/${Name}Plan.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/NativeFunctions.h>
#else
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

static void encode_${name}(const Tensor& input, const Tensor& output) {
  const auto problem =
      ${name}::make_problem(output.sizes().data(), {input.strides().data(), output.strides().data()}, output.dim());
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

TORCH_IMPL_FUNC(${function})(const Tensor& ${self}, const Tensor& out) {
  using namespace mps;
  const auto dtype = common_dtype();
  TORCH_CHECK_NOT_IMPLEMENTED(supportedFloatingType(dtype), "\"${name}\" not implemented for '", dtype, "'");
  TORCH_CHECK(${self}.dim() <= c10::metal::max_ndim,
              "${name} supports tensors with at most ",
              c10::metal::max_ndim,
              " dimensions on MPS, but got ",
              ${self}.dim());
  if (out.numel() == 0) {
    return;
  }
  const auto input = ${self}.to(dtype);
  const auto output = out.scalar_type() == dtype ? out : at::empty_like(out, out.options().dtype(dtype));
  encode_${name}(input, output);
  if (!output.is_same(out)) {
    out.copy_(output);
  }
}

} // namespace at::native

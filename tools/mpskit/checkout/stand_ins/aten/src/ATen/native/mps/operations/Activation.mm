// A stand-in that `mpskit skeleton` puts in the place of PyTorch's own Activation.mm, which the
// torch wheel does not carry: four ops in the manner of the MPSGraph backend, written for rehearsal.
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/Activation.h>
#include <ATen/native/mps/OperationUtils.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/_log_softmax_backward_data_native.h>
#include <ATen/ops/_log_softmax_native.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mish_native.h>
#include <ATen/ops/relu_native.h>
#endif

using namespace at::mps;

namespace at::native {

Tensor relu_mps(const Tensor& self) {
  using namespace mps;
  using CachedGraph = MPSUnaryCachedGraph;

  Tensor result = at::empty_like(self, MemoryFormat::Contiguous);
  if (result.numel() == 0) {
    return result;
  }

  @autoreleasepool {
    const std::string key = "stand_in_relu:" + getTensorsStringKey({self});
    auto* cached = LookUpOrCreateCachedGraph<CachedGraph>(key, [&](auto graph, auto slots) {
      slots->inputTensor_ = mpsGraphRankedPlaceHolder(graph, self);
      slots->outputTensor_ = [graph reLUWithTensor:slots->inputTensor_ name:nil];
    });

    Placeholder input(cached->inputTensor_, self);
    Placeholder output(cached->outputTensor_, result);
    runMPSGraph(getCurrentMPSStream(), cached->graph(), dictionaryFromPlaceholders(input), output);
  }
  return result;
}

// log(softmax(x)) over one dimension: x minus its maximum, minus the logarithm of the sum of exponentials.
TORCH_IMPL_FUNC(log_softmax_mps_out)
(const Tensor& self, const int64_t dim, const bool half_to_float, const Tensor& out) {
  using namespace mps;
  using CachedGraph = MPSUnaryCachedGraph;

  TORCH_CHECK(!half_to_float, "log_softmax on MPS does not convert half to float");
  if (out.numel() == 0) {
    return;
  }

  @autoreleasepool {
    const std::string key = "stand_in_log_softmax:" + getTensorsStringKey({self}) + ":{" + std::to_string(dim) + "}";
    auto* cached = LookUpOrCreateCachedGraph<CachedGraph>(key, [&](auto graph, auto slots) {
      auto* x = mpsGraphRankedPlaceHolder(graph, self);
      auto* maximum = [graph reductionMaximumWithTensor:x axis:dim name:nil];
      auto* shifted = [graph subtractionWithPrimaryTensor:x secondaryTensor:maximum name:nil];
      auto* exponentials = [graph exponentWithTensor:shifted name:nil];
      auto* sum = [graph reductionSumWithTensor:exponentials axis:dim name:nil];
      auto* logSum = [graph logarithmWithTensor:sum name:nil];
      slots->inputTensor_ = x;
      slots->outputTensor_ = [graph subtractionWithPrimaryTensor:shifted secondaryTensor:logSum name:nil];
    });

    Placeholder input(cached->inputTensor_, self);
    Placeholder output(cached->outputTensor_, out);
    runMPSGraph(getCurrentMPSStream(), cached->graph(), dictionaryFromPlaceholders(input), output);
  }
}

TORCH_IMPL_FUNC(log_softmax_backward_mps_out)
(const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType input_dtype, const Tensor& grad_input) {
  using namespace mps;
  using CachedGraph = MPSUnaryGradCachedGraph;

  if (grad_input.numel() == 0) {
    return;
  }

  @autoreleasepool {
    const std::string key =
        "stand_in_log_softmax_backward:" + getTensorsStringKey({grad_output, output}) + ":{" + std::to_string(dim) + "}";
    auto* cached = LookUpOrCreateCachedGraph<CachedGraph>(key, [&](auto graph, auto slots) {
      auto* grad = mpsGraphRankedPlaceHolder(graph, grad_output);
      auto* logProbabilities = mpsGraphRankedPlaceHolder(graph, output);
      auto* probabilities = [graph exponentWithTensor:logProbabilities name:nil];
      auto* gradSum = [graph reductionSumWithTensor:grad axis:dim name:nil];
      auto* share = [graph multiplicationWithPrimaryTensor:probabilities secondaryTensor:gradSum name:nil];
      slots->gradOutputTensor_ = grad;
      slots->outputTensor_ = logProbabilities;
      slots->gradInputTensor_ = [graph subtractionWithPrimaryTensor:grad secondaryTensor:share name:nil];
    });

    Placeholder grad(cached->gradOutputTensor_, grad_output);
    Placeholder logProbabilities(cached->outputTensor_, output);
    Placeholder result(cached->gradInputTensor_, grad_input);
    auto feeds = dictionaryFromPlaceholders(grad, logProbabilities);
    runMPSGraph(getCurrentMPSStream(), cached->graph(), feeds, result);
  }
}

TORCH_IMPL_FUNC(mish_out_mps)
(const Tensor& self, const Tensor& result) {
  using namespace mps;
  using CachedGraph = MPSUnaryCachedGraph;

  if (result.numel() == 0) {
    return;
  }

  @autoreleasepool {
    const std::string key = "stand_in_mish:" + getTensorsStringKey({self});
    auto* cached = LookUpOrCreateCachedGraph<CachedGraph>(key, [&](auto graph, auto slots) {
      auto* x = mpsGraphRankedPlaceHolder(graph, self);
      auto* one = [graph constantWithScalar:1.0 dataType:getMPSDataType(self)];
      auto* exponential = [graph exponentWithTensor:x name:nil];
      auto* softplus = [graph logarithmWithTensor:[graph additionWithPrimaryTensor:exponential
                                                                   secondaryTensor:one
                                                                              name:nil]
                                             name:nil];
      auto* gate = [graph tanhWithTensor:softplus name:nil];
      slots->inputTensor_ = x;
      slots->outputTensor_ = [graph multiplicationWithPrimaryTensor:x secondaryTensor:gate name:nil];
    });

    Placeholder input(cached->inputTensor_, self);
    Placeholder output(cached->outputTensor_, result);
    runMPSGraph(getCurrentMPSStream(), cached->graph(), dictionaryFromPlaceholders(input), output);
  }
}

} // namespace at::native

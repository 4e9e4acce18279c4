#include <ATen/native/mps/operations/LogSoftmaxPlan.h>

namespace plan = at::native::mps::log_softmax;
using Partial = LogSumExp;
constexpr size_t TENSORS = 2; // input, output

#include "plan_answer.h"

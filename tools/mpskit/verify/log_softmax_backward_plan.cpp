#include <ATen/native/mps/operations/LogSoftmaxBackwardPlan.h>

namespace plan = at::native::mps::log_softmax_backward;
using Partial = float;
constexpr size_t TENSORS = 3; // grad, output, grad_input

#include "plan_answer.h"

"""Trees as upstream has had them around log_softmax, in words of our own: what a base looks like
before the op left MPSGraph, with kernels of its own, and with kernels that softmax shares."""

from __future__ import annotations

from checkouts import ACTIVATION, NATIVE_FUNCTIONS, OPERATIONS

KERNELS = "aten/src/ATen/native/mps/kernels"
SOFTMAX = f"{OPERATIONS}/SoftMax.mm"
SOFTMAX_KERNELS = f"{KERNELS}/SoftMax.metal"

_EVERYWHERE = {
    "version.txt": "2.14.0a0\n",
    "torch/__init__.py": "",
    "c10/metal/utils.h": "#pragma once\n",
    "c10/metal/reduction_utils.h": "#pragma once\n",
    "c10/metal/common.h": "#pragma once\nusing array = int;\n",
    "aten/src/ATen/native/mps/OperationUtils.h": "#pragma once\n",
    NATIVE_FUNCTIONS: """\
        - func: _log_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out) -> Tensor(a!)
          structured: True
          dispatch:
            CPU: log_softmax_cpu_out
            MPS: log_softmax_mps_out
        """,  # noqa: E501
}

_BACKWARD = """
TORCH_IMPL_FUNC(log_softmax_backward_mps_out)
(const Tensor& grad, const Tensor& output, int64_t dim, ScalarType dtype, const Tensor& out) {
  build_graph(grad, output);
}
"""

_GRAPH_FORWARD = """
TORCH_IMPL_FUNC(log_softmax_mps_out)
(const Tensor& self, const int64_t dim, const bool half_to_float, const Tensor& out) {
  @autoreleasepool {
    build_graph(self, dim);
  }
}
"""

_SOFTMAX_ON_GRAPH = """\
#include <ATen/ops/_softmax_native.h>

namespace at::native {

TORCH_IMPL_FUNC(softmax_mps_out)
(const Tensor& self, const int64_t dim, const bool half_to_float, const Tensor& out) {
  build_graph(self, dim);
}

} // namespace at::native
"""


def _activation(*definitions: str) -> str:
    body = "\n".join(("\nTensor relu_mps(const Tensor& self) {\n  return self;\n}\n", *definitions))
    return (
        f"#include <ATen/ops/relu_native.h>\n\nnamespace at::native {{\n{body}\n}} // at::native\n"
    )


MPSGRAPH = {
    **_EVERYWHERE,
    ACTIVATION: _activation(_GRAPH_FORWARD, _BACKWARD),
    SOFTMAX: _SOFTMAX_ON_GRAPH,
}

LOG_SOFTMAX_KERNELS = {
    **_EVERYWHERE,
    ACTIVATION: _activation(_BACKWARD),
    SOFTMAX: _SOFTMAX_ON_GRAPH,
    f"{KERNELS}/LogSoftmax.h": "#pragma once\nstruct LogSoftmaxParams {};\n",
    f"{KERNELS}/LogSoftmax.metal": """\
        #define REGISTER(DTYPE) \\
          template [[host_name("log_softmax_row_" #DTYPE "_u32")]] [[kernel]] void row<DTYPE>();
        REGISTER(float);
        """,
    f"{OPERATIONS}/LogSoftmax.mm": """\
        TORCH_IMPL_FUNC(log_softmax_mps_out)
        (const Tensor& self, const int64_t dim, const bool half_to_float, const Tensor& out) {
          launch(self, dim, out);
        }
        """,
}

SHARED_KERNELS = {
    **_EVERYWHERE,
    ACTIVATION: _activation(_BACKWARD),
    f"{KERNELS}/SoftMax.h": "#pragma once\nstruct SoftmaxParams {};\n",
    SOFTMAX_KERNELS: """\
        template <typename T, bool log_softmax>
        [[kernel]] void softmax_row(constant T* input, device T* output) {}

        #define REGISTER_SOFTMAX_IDX(DTYPE, IDX_T, SUFFIX)              \\
          REGISTER_SOFTMAX_OP(DTYPE, IDX_T, SUFFIX, softmax, false)     \\
          REGISTER_SOFTMAX_OP(DTYPE, IDX_T, SUFFIX, log_softmax, true)  \\
          REGISTER_SOFTMAX_PARTIAL(DTYPE, IDX_T, SUFFIX)

        REGISTER_SOFTMAX_IDX(float, uint, u32)
        """,
    SOFTMAX: """\
        #include <ATen/ops/_log_softmax_native.h>
        #include <ATen/ops/_softmax_native.h>

        namespace at::native {

        static void run(const Tensor& self, int64_t dim, const Tensor& out, bool log_softmax) {
          launch(log_softmax ? "log_softmax" : "softmax", self, dim, out);
        }

        TORCH_IMPL_FUNC(softmax_mps_out)
        (const Tensor& self, const int64_t dim, const bool half_to_float, const Tensor& out) {
          run(self, dim, out, false);
        }

        TORCH_IMPL_FUNC(log_softmax_mps_out)
        (const Tensor& self, const int64_t dim, const bool half_to_float, const Tensor& out) {
          run(self, dim, out, true);
        }

        } // namespace at::native
        """,
}

LAYOUTS = {
    "mpsgraph": MPSGRAPH,
    "log-softmax-kernels": LOG_SOFTMAX_KERNELS,
    "softmax-kernels": SHARED_KERNELS,
}

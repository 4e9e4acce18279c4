"""Trees as upstream has had them around log_softmax, in words of our own: what a base looks like
before the op left MPSGraph, with kernels of its own, and with kernels that softmax shares."""

from __future__ import annotations

import textwrap

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

        - func: _log_softmax_backward_data.out(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype, *, Tensor(a!) out) -> Tensor(a!)
          structured: True
          dispatch:
            CPU: log_softmax_backward_cpu_out
            MPS: log_softmax_backward_mps_out
        """,  # noqa: E501
}

_GRAPH_BACKWARD = """
TORCH_IMPL_FUNC(log_softmax_backward_mps_out)
(const Tensor& grad, const Tensor& output, int64_t dim, ScalarType dtype, const Tensor& out) {
  const std::string key = "log_softmax_backward_mps_out:" + std::to_string(dim);
  build_graph(key, grad, output);
}
"""

_KERNEL_BACKWARD = """
TORCH_IMPL_FUNC(log_softmax_backward_mps_out)
(const Tensor& grad, const Tensor& output, int64_t dim, ScalarType dtype, const Tensor& out) {
  run_backward(grad, output, dim, out, true);
}
"""

_GRAPH_FORWARD = """
TORCH_IMPL_FUNC(log_softmax_mps_out)
(const Tensor& self, const int64_t dim, const bool half_to_float, const Tensor& out) {
  @autoreleasepool {
    const std::string key = "log_softmax_mps_out:" + std::to_string(dim);
    build_graph(key, self);
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


def _activation(headers: tuple[str, ...], *definitions: str) -> str:
    includes = "".join(f"#include <ATen/ops/{header}_native.h>\n" for header in (*headers, "relu"))
    body = "\n".join(("\nTensor relu_mps(const Tensor& self) {\n  return self;\n}\n", *definitions))
    return f"{includes}\nnamespace at::native {{\n{body}\n}} // at::native\n"


_GRAPH_BACKWARD_ALONE = _activation(("_log_softmax_backward_data",), _GRAPH_BACKWARD)

MPSGRAPH = {
    **_EVERYWHERE,
    ACTIVATION: _activation(
        ("_log_softmax_backward_data", "_log_softmax"), _GRAPH_FORWARD, _GRAPH_BACKWARD
    ),
    SOFTMAX: _SOFTMAX_ON_GRAPH,
}

LOG_SOFTMAX_KERNELS = {
    **_EVERYWHERE,
    ACTIVATION: _GRAPH_BACKWARD_ALONE,
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
    ACTIVATION: _GRAPH_BACKWARD_ALONE,
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

# The backward on kernels that softmax shares, too.
SHARED_BACKWARD_KERNELS = {
    **SHARED_KERNELS,
    ACTIVATION: _activation(()),
    SOFTMAX: textwrap.dedent(SHARED_KERNELS[SOFTMAX])
    .replace("#include", "#include <ATen/ops/_log_softmax_backward_data_native.h>\n#include", 1)
    .replace("\n} // namespace", _KERNEL_BACKWARD + "\n} // namespace"),
}

# By the layout that each patch of the series finds there.
LAYOUTS = {
    ("mpsgraph", "mpsgraph"): MPSGRAPH,
    ("log-softmax-kernels", "mpsgraph"): LOG_SOFTMAX_KERNELS,
    ("softmax-kernels", "mpsgraph"): SHARED_KERNELS,
    ("softmax-kernels", "softmax-kernels"): SHARED_BACKWARD_KERNELS,
}

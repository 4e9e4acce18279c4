"""The patch's kernels under the sanitizer: every branch of the plan, dtypes, layouts."""

from __future__ import annotations

import pytest
import torch

from mpskit.verify.op_under_test import OpUnderTest
from mpskit.verify.plan import BackwardKernel, Index, Kernel

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
BRANCHES = {
    Kernel.ROW: "log_softmax_row",
    Kernel.SPLIT: "log_softmax_partial",
    Kernel.STRIDED: "log_softmax_",
    Kernel.LONG_STRIDED: "log_softmax_long_",
    Kernel.TRANSPOSE: "log_softmax_transpose",
    Kernel.LONG_ROW: "log_softmax_long_row",
}


def run(x, dim, out=None, **forced):
    expected = torch.log_softmax(x.float(), dim).to(x.dtype)
    with OpUnderTest(sanitize=True, **forced) as op:
        actual = torch.log_softmax(x, dim) if out is None else torch.log_softmax(x, dim, out=out)
    torch.testing.assert_close(actual, expected)
    return op


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", Index)
@pytest.mark.parametrize("kernel", Kernel)
@pytest.mark.parametrize("shape", [(3, 5), (2, 257), (1, 9000)])
def test_each_branch(shape, kernel, index, dtype):
    if kernel is Kernel.STRIDED:
        shape = (shape[0], min(shape[1], 512))  # which fit into its registers
    op = run(torch.randn(shape).to(dtype), 1, kernel=kernel, index=index)
    op.require_launches(BRANCHES[kernel])


LAYOUTS = {
    "transposed": lambda: torch.randn(40, 7).t(),
    "offset": lambda: torch.randn(8, 41)[:, 1:],
    "stepped": lambda: torch.randn(4, 90)[:, ::3],
    "expanded": lambda: torch.randn(1, 33).expand(5, 33),
    "channels last": lambda: torch.randn(2, 6, 5, 4).to(memory_format=torch.channels_last),
    "one element": lambda: torch.randn(4, 1),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, dtype):
    x = LAYOUTS[layout]()
    view = torch.empty_strided(x.shape, x.stride(), dtype=dtype) if 0 not in x.stride() else None
    run(x.to(dtype) if view is None else view.copy_(x), 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_strided_out(dtype):
    run(torch.randn(6, 50).to(dtype), 1, out=torch.empty(50, 6, dtype=dtype).t())
    run(torch.randn(6, 50).to(dtype), 1, out=torch.empty(6, 100, dtype=dtype)[:, ::2])


@pytest.mark.parametrize("index", Index)
@pytest.mark.parametrize("kernel", BackwardKernel)
@pytest.mark.parametrize("shape", [(3, 5), (2, 257), (1, 9000)])
def test_each_branch_of_the_backward(shape, kernel, index):
    if kernel is BackwardKernel.ROW:
        shape = (shape[0], min(shape[1], 512))  # which fit into its registers
    grad, output = torch.randn(shape), torch.log_softmax(torch.randn(shape), 1)
    run_backward(grad, output, 1, backward_kernel=kernel, index=index)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_the_backward(layout, dtype):
    grad = LAYOUTS[layout]()
    output = torch.log_softmax(torch.randn(grad.shape), 1).to(dtype)
    view = torch.empty_strided(grad.shape, grad.stride(), dtype=dtype)
    grad = grad.to(dtype) if 0 in grad.stride() else view.copy_(grad)
    run_backward(grad, output, 1)
    run_backward(output, torch.log_softmax(grad.float(), 1).to(dtype), 1)


def run_backward(grad, output, dim, **forced):
    expected = grad.float() - output.float().exp() * grad.float().sum(dim, keepdim=True)
    with OpUnderTest(sanitize=True, **forced) as op:
        actual = torch.ops.aten._log_softmax_backward_data(grad, output, dim, grad.dtype)
    torch.testing.assert_close(actual, expected.to(grad.dtype), rtol=2e-2, atol=1e-3)
    op.require_launches("log_softmax_backward")

"""The op's place in torch's dispatch, whatever the kernels compute."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from mpskit.errors import MpskitError
from mpskit.verify.op_under_test import OpUnderTest
from mpskit.verify.plan import BackwardKernel, Index, Kernel
from mpskit.verify.sources import PatchSources

aten = torch.ops.aten


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(6, 40)


def test_functional_forms_reach_the_kernels(x):
    calls = (
        lambda: torch.log_softmax(x, 1),
        lambda: torch.special.log_softmax(x, 1),
        lambda: x.log_softmax(-1),
        lambda: F.log_softmax(x, 1),
        lambda: torch.nn.LogSoftmax(dim=1)(x),
        lambda: F.cross_entropy(x, torch.zeros(6, dtype=torch.long)),
        lambda: torch.log_softmax(x, 1, out=torch.empty(6, 40)),
        lambda: F.log_softmax(x.half(), 1, dtype=torch.float32),
    )
    for call in calls:
        expected = call()
        with OpUnderTest() as op:
            actual = call()
        torch.testing.assert_close(actual, expected)
        assert op.launches == {"log_softmax_row_float_u32": 1}


def test_inference_mode_and_no_grad_reach_the_kernels(x):
    for context in (torch.inference_mode, torch.no_grad):
        with OpUnderTest() as op, context():
            torch.log_softmax(x, 1)
            F.cross_entropy(x, torch.zeros(6, dtype=torch.long))
        assert op.launches.total() == 2


def test_backward_runs_on_kernels_of_its_own(x):
    x.requires_grad_()
    with OpUnderTest() as op:
        torch.log_softmax(x, 1).sum().backward()
    assert op.launches == {"log_softmax_row_float_u32": 1, "log_softmax_backward_row_float_u32": 1}
    torch.testing.assert_close(x.grad, 1 - 40 * torch.softmax(x.detach(), 1))


def test_backward_starts_from_the_kernels_result(x):
    x.requires_grad_()
    with OpUnderTest() as op:
        out = torch.log_softmax(x, 1)
    out.sum().backward()
    assert op.launches.total() == 1
    torch.testing.assert_close(x.grad, 1 - 40 * out.exp().detach())


def test_other_ops_and_nested_contexts_are_left_alone(x):
    with OpUnderTest() as outer:
        with OpUnderTest() as inner:
            torch.log_softmax(x, 1)
        torch.softmax(x, 1)
    assert inner.launches.total() == 1
    assert outer.launches.total() == 0


def test_fake_and_meta_tensors_pass_untouched(x):
    with OpUnderTest() as op:
        assert torch.log_softmax(x.to("meta"), 1).shape == (6, 40)
        with FakeTensorMode() as fake:
            out = torch.log_softmax(fake.from_tensor(x), 1)
    with FakeTensorMode() as fake:
        fake_x = fake.from_tensor(x)
        with OpUnderTest() as inner:
            torch.log_softmax(fake_x, 1)
    assert out.shape == (6, 40)
    assert not op.launches
    assert not inner.launches


def test_launches_must_be_shown(x):
    with OpUnderTest() as op:
        torch.softmax(x, 1)
    with pytest.raises(MpskitError, match="No kernel was launched"):
        op.require_launches()
    with OpUnderTest() as op:
        torch.log_softmax(x, 1)
    op.require_launches()
    op.require_launches("log_softmax_row_float")
    with pytest.raises(MpskitError, match="No log_softmax_partial kernel"):
        op.require_launches("log_softmax_row", "log_softmax_partial")


def test_the_backwards_result_is_contiguous_as_torchs_own():
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    expected = aten._log_softmax_backward_data(x, x, 1, x.dtype)
    with OpUnderTest():
        actual = aten._log_softmax_backward_data(x, x, 1, x.dtype)
        out = torch.empty(3)
        with pytest.warns(UserWarning, match="was resized"):
            aten._log_softmax_backward_data.out(x, x, 1, x.dtype, out=out)
    for result in (actual, out):
        torch.testing.assert_close(result, expected)
        assert result.stride() == expected.stride()


@pytest.mark.parametrize("kernel", list(BackwardKernel))
@pytest.mark.parametrize("index", list(Index))
def test_kernel_and_index_of_the_backward_can_be_forced(x, kernel, index):
    expected = aten._log_softmax_backward_data(x, x, 1, x.dtype)
    with OpUnderTest(backward_kernel=kernel, index=index) as op:
        actual = aten._log_softmax_backward_data(x, x, 1, x.dtype)
    torch.testing.assert_close(actual, expected)
    assert len(op.launches) == (2 if kernel is BackwardKernel.SPLIT else 1)
    assert all(name.endswith(f"_{index.name.lower()}") for name in op.launches)


def test_an_unknown_option_is_refused(x):
    with OpUnderTest(kernell=Kernel.ROW), pytest.raises(TypeError, match="kernell"):
        torch.log_softmax(x, 1)


@pytest.mark.parametrize("kernel", list(Kernel))
@pytest.mark.parametrize("index", list(Index))
def test_kernel_and_index_can_be_forced(x, kernel, index):
    with OpUnderTest(kernel=kernel, index=index) as op:
        out = torch.log_softmax(x, 1)
    torch.testing.assert_close(out, torch.log_softmax(x, 1))
    assert len(op.launches) == (2 if kernel is Kernel.SPLIT else 1)
    assert all(name.endswith(f"_{index.name.lower()}") for name in op.launches)


def test_impossible_force_is_refused():
    with OpUnderTest(kernel=Kernel.ROW), pytest.raises(MpskitError, match="row kernel"):
        torch.log_softmax(torch.randn(20000), 0)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (torch.float64, "Double"),
        (torch.int64, "Long"),
        (torch.uint8, "Byte"),
        (torch.bool, "Bool"),
        (torch.complex64, "ComplexFloat"),
    ],
)
def test_unsupported_dtypes_are_refused_as_on_mps(dtype, name):
    with (
        OpUnderTest(),
        pytest.raises(NotImplementedError, match=f"^\"log_softmax\" not implemented for '{name}'$"),
    ):
        torch.log_softmax(torch.ones(3, dtype=dtype), 0)


def test_half_to_float_is_refused_as_on_mps():
    with OpUnderTest(), pytest.raises(RuntimeError, match="half to float conversion"):
        torch._log_softmax(torch.ones(3, dtype=torch.half), 0, True)


def test_too_many_dimensions_are_refused_as_on_mps():
    with OpUnderTest(), pytest.raises(RuntimeError, match="at most 16 dimensions on MPS"):
        torch.log_softmax(torch.ones((1,) * 17), 0)


def test_the_backward_refuses_what_it_does_on_mps(x):
    def run(grad, output, dtype):
        aten._log_softmax_backward_data(grad, output, 0, dtype)

    long, many = x.long(), torch.ones((1,) * 17)
    with OpUnderTest():
        with pytest.raises(RuntimeError, match="float to half conversion is not supported on MPS"):
            run(x, x, torch.half)
        with pytest.raises(NotImplementedError, match="_backward\" not implemented for 'Long'"):
            run(long, long, torch.long)
        with pytest.raises(RuntimeError, match="at most 16 dimensions on MPS, but got 17"):
            run(many, many, torch.float)


def test_error_texts_are_those_of_the_host_code():
    operations = PatchSources.find().plan.parent
    for file, op, conversion in (
        ("LogSoftmax.mm", "log_softmax", "half to float"),
        ("LogSoftmaxBackward.mm", "log_softmax_backward", "float to half"),
    ):
        host = (operations / file).read_text()
        for text in (
            f'"{op} with {conversion} conversion is not supported on MPS"',
            rf'"\"{op}\" not implemented for ',
            f'"{op} supports tensors with at most "',
            '" dimensions on MPS, but got "',
        ):
            assert text in host


def test_torchs_own_checks_come_first(x):
    with OpUnderTest() as op:
        with pytest.raises(IndexError, match="Dimension out of range"):
            torch.log_softmax(x, 2)
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
            torch.log_softmax(x, 1, out=torch.empty(6, 40, dtype=torch.half))
        with pytest.warns(UserWarning, match="was resized"):
            torch.log_softmax(x, 1, out=torch.empty(3, 3))
    assert op.launches.total() == 1


def test_empty_tensors_launch_nothing():
    with OpUnderTest() as op:
        assert torch.log_softmax(torch.empty(3, 0), 1).shape == (3, 0)
    assert not op.launches


def test_a_patch_directory_without_kernels_is_refused(tmp_path):
    with pytest.raises(MpskitError, match=r"has no .*LogSoftmax\.metal"):
        OpUnderTest(patch_dir=tmp_path)

"""An op of somebody else's patch set on kernels of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from mpskit.errors import MpskitError
from mpskit.verify import METAL_DTYPES, Implementation, Kernels, OpUnderTest

aten = torch.ops.aten

SOURCE = """
#include <c10/metal/utils.h>
template <typename T>
kernel void exp2_dense(device T* out, constant T* x, uint i [[thread_position_in_grid]]) {
  out[i] = static_cast<T>(::metal::precise::exp2(static_cast<float>(x[i])));
}
template [[host_name("exp2_float")]] kernel void
exp2_dense<float>(device float*, constant float*, uint);
template [[host_name("exp2_half")]] kernel void
exp2_dense<half>(device half*, constant half*, uint);
"""


def launch_exp2(kernels: Kernels, out: torch.Tensor, x: torch.Tensor) -> None:
    kernel = getattr(kernels.library, f"exp2_{METAL_DTYPES[out.dtype]}")
    dense = torch.empty_like(out, memory_format=torch.contiguous_format)
    size = kernels.options.get("group_size", 32)
    kernel(dense, x.to(out.dtype).contiguous(), threads=x.numel(), group_size=size)
    out.copy_(dense)


def refuse_bool(x: torch.Tensor) -> None:
    if x.dtype == torch.bool:
        raise NotImplementedError("\"exp2\" not implemented for 'Bool'")


EXP2 = Implementation(
    functional=aten.exp2.default,
    out=aten.exp2.out,
    in_place=aten.exp2_.default,
    kernels="kernels/Exp2.metal",
    launch=launch_exp2,
    refuse=refuse_bool,
)


@pytest.fixture
def patch_set(tmp_path: Path) -> Path:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/Exp2.metal").write_text(SOURCE)
    return tmp_path


def exp2_under_test(patch_set: Path, **options) -> OpUnderTest:
    return OpUnderTest(implementations=[EXP2], patch_dir=patch_set, **options)


def test_each_form_of_an_op_reaches_its_kernels(patch_set: Path) -> None:
    x = torch.randn(6, 5).t()
    expected = torch.exp2(x)
    out = torch.empty(3)
    with exp2_under_test(patch_set) as op:
        results = [torch.exp2(x), x.exp2(), torch.special.exp2(x)]
        with pytest.warns(UserWarning, match="was resized"):
            results.append(torch.exp2(x, out=out))
        results.append(x.clone().exp2_())
    assert results[3] is out
    for result in results:
        torch.testing.assert_close(result, expected)
    assert results[0].stride() == expected.stride()
    assert op.launches == {"exp2_float": 5}
    op.require_launches("exp2_float")


def test_promotion_and_errors_are_those_of_the_op(patch_set: Path) -> None:
    with exp2_under_test(patch_set) as op:
        assert torch.exp2(torch.tensor([1, 2])).dtype == torch.float32
        with pytest.raises(RuntimeError, match="can't be cast"):
            torch.tensor([1, 2]).exp2_()
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            torch.exp2(torch.tensor([True]))
    assert op.launches == {"exp2_float": 1}


def test_autograd_is_above_the_kernels(patch_set: Path) -> None:
    x = torch.randn(7, requires_grad=True)
    with exp2_under_test(patch_set):
        torch.exp2(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.exp2(x.detach()) * torch.log(torch.tensor(2.0)))


def test_options_reach_the_launch(patch_set: Path) -> None:
    with exp2_under_test(patch_set, group_size=1025), pytest.raises(MpskitError, match="1025"):
        torch.exp2(torch.randn(2000))


def test_what_no_kernel_wrote_stands_out(patch_set: Path) -> None:
    lazy = Implementation(aten.exp2.default, EXP2.kernels, lambda *_: None)
    with OpUnderTest(implementations=[lazy], patch_dir=patch_set) as op:
        assert (torch.exp2(torch.zeros(5, dtype=torch.half)) == lazy.unwritten).all()
    with pytest.raises(MpskitError, match="No kernel was launched"):
        op.require_launches()


def test_a_patch_set_without_the_kernels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MpskitError, match=r"has no kernels/Exp2\.metal"):
        exp2_under_test(tmp_path)

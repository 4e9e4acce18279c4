"""The kernels of log_softmax's backward against float64, on the cpu backend."""

from __future__ import annotations

import importlib.util
import itertools
import mmap
import unittest
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mpskit.metal import compile_shader
from mpskit.verify.launch import run_backward_plan
from mpskit.verify.op_under_test import OpUnderTest
from mpskit.verify.plan import METAL_DTYPES, BackwardKernel, BackwardPlanner, Index, Plan
from mpskit.verify.sources import PatchSources

DTYPES = list(METAL_DTYPES)
ROW, SPLIT, STRIDED, LONG_ROW = BackwardKernel
# Each threadgroup memory and barrier of the kernels, in few threads: the sanitizer is slow.
SANITIZED = [
    (ROW, (5, 33)),
    (ROW, (2, 1025)),
    (LONG_ROW, (3, 130)),
    (SPLIT, (2, 2050)),
    (STRIDED, (1, 37, 72)),
    (STRIDED, (2, 5, 3, 100)),
]

_backward = torch.ops.aten._log_softmax_backward_data


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def sources() -> PatchSources:
    return PatchSources.find()


def random_tensors(*shape: int, dim: int = 1, dtype: torch.dtype = torch.float32):
    """A gradient that adds up to something, and log-probabilities."""
    grad = (torch.randn(shape) + 0.5).to(dtype)
    return grad, torch.log_softmax(torch.randn(shape) * 3, dim).to(dtype)


def reference(grad: torch.Tensor, output: torch.Tensor, dim: int) -> torch.Tensor:
    grad = grad.double()
    return grad - output.double().exp() * grad.sum(dim, keepdim=True)


def kernels(grad, output, dim: int, out=None, kernel=None, **how) -> torch.Tensor:
    if out is None:
        out = torch.full(output.shape, 1e4).to(output.dtype)
    with OpUnderTest(backward_kernel=kernel, **how) as op:
        _backward.out(grad, output, dim, output.dtype, out=out)
    op.require_launches("log_softmax_backward")
    return out


def assert_rounded(actual, grad, output, dim: int) -> None:
    """``actual`` is float64's result, after float32 arithmetic and one rounding.

    A sum of n terms, added by a tree and in short rows, errs by a few float32 roundings of the
    sum of their magnitudes; the exponential scales that down.
    """
    expected = reference(grad, output, dim)
    magnitudes = grad.double().abs().sum(dim, keepdim=True)
    roundings = 8 * torch.finfo(torch.float32).eps * (1 + output.double().exp() * magnitudes)
    half_ulp = 0.51 * torch.finfo(output.dtype).eps * expected.abs()
    assert ((actual.double() - expected).abs() <= half_ulp + roundings).all()


def check(grad, output, dim: int, out=None, **how) -> None:
    assert_rounded(kernels(grad, output, dim, out, **how), grad, output, dim)


@pytest.mark.parametrize("index", list(Index))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("kernel", "size"),
    [
        *((ROW, size) for size in (1, 31, 32, 33, 257, 1000, 4097)),
        *((LONG_ROW, size) for size in (1, 33, 257, 4097, 70001)),
        *((SPLIT, size) for size in (1, 33, 2049, 30522)),
        *((STRIDED, size) for size in (1, 7, 33, 257, 2049)),
    ],
)
def test_every_kernel(kernel, size, dtype, index):
    grad, output = random_tensors(3, size, dtype=dtype)
    check(grad, output, 1, kernel=kernel, index=index)
    columns = [tensor[:, :2000].t().contiguous() for tensor in (grad, output)]
    check(*columns, 0, kernel=kernel, index=index)


@pytest.mark.parametrize("kernel", list(BackwardKernel))
@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_at_any_alignment(kernel, dtype):
    """Rows that begin and end at each place between two vectors, other ones in each tensor."""
    for size, *shifts in itertools.product((64, 79, 130), (0, 1, 8), (0, 3), (0, 1)):
        tensors = random_tensors(5, size, dtype=dtype)
        padded = []
        for tensor, shift in zip((*tensors, torch.ones_like(tensors[0])), shifts, strict=True):
            padded.append(torch.zeros(5, size + shift).to(dtype)[:, shift:].copy_(tensor))
        check(*padded[:2], 1, padded[2], kernel=kernel)


@pytest.mark.parametrize("kernel", [None, STRIDED, LONG_ROW])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 40, 150])
def test_rows_side_by_side(kernel, dtype, size):
    """In vectors and one by one, each tensor channels-last or not."""
    for inner in ((8, 8), (3, 5)):
        grad, output = random_tensors(2, size, *inner, dtype=dtype)
        tensors = (grad, output, torch.ones_like(grad))
        for lasts in itertools.product((False, True), repeat=3):
            images = [
                tensor.to(memory_format=torch.channels_last if last else torch.contiguous_format)
                for tensor, last in zip(tensors, lasts, strict=True)
            ]
            check(*images[:2], 1, images[2], kernel=kernel)


@st.composite
def views(draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Grad, output and grad_input of one shape, each laid out its own way, grad maybe expanded."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    steps = draw(st.lists(st.sampled_from((1, 1, 2)), min_size=len(sizes), max_size=len(sizes)))

    def view(fill: float | None) -> torch.Tensor:
        order = draw(st.permutations(range(len(sizes))))
        memory = [sizes[d] * steps[d] for d in order]
        base = torch.randn(memory) if fill is None else torch.full(memory, fill)
        permuted = base.permute(sorted(range(len(order)), key=order.__getitem__))
        return permuted[tuple(slice(None, None, step) for step in steps)]

    grad, output, grad_input = view(None), view(None).abs().neg(), view(1e4)
    for d in range(len(sizes)):
        if draw(st.integers(0, 5)) == 0:
            grad = grad.narrow(d, 0, 1).expand(sizes)
    return grad, output, grad_input


@settings(max_examples=60, deadline=None)
@given(views(), st.data())
def test_any_layout(tensors, data):
    grad, output, grad_input = tensors
    dim = data.draw(st.integers(0, grad.dim() - 1))
    how = {
        "kernel": data.draw(st.sampled_from((None, *BackwardKernel))),
        "index": data.draw(st.sampled_from((None, *Index))),
    }
    base = grad_input._base if grad_input._base is not None else grad_input
    untouched = int((base == 1e4).sum()) - grad_input.numel()
    check(grad, output, dim, grad_input, **how)
    assert int((base == 1e4).sum()) == untouched


@pytest.mark.parametrize("kernel", list(BackwardKernel))
@pytest.mark.parametrize("dtype", DTYPES)
def test_in_place(kernel, dtype):
    for size in (7, 300, 3000):
        for overwritten in range(2):
            tensors = random_tensors(3, size, dtype=dtype)
            expected = kernels(*tensors, 1, kernel=kernel)
            in_place = kernels(*tensors, 1, tensors[overwritten], kernel=kernel)
            assert torch.equal(in_place, expected)


@pytest.mark.parametrize("kernel", list(BackwardKernel))
@pytest.mark.parametrize("dtype", DTYPES)
def test_non_finite_as_on_the_cpu(kernel, dtype):
    inf, nan = float("inf"), float("nan")
    grad, output = random_tensors(7, 100, dtype=dtype)
    grad[0, 3], grad[1, 64], grad[2, 99], grad[2, 0] = nan, inf, inf, -inf
    output[3, 5], output[4, ::2], output[5] = nan, -inf, -inf
    grad[6, 1], output[6, ::3] = -inf, -inf
    theirs = _backward(grad, output, 1, dtype)
    ours = kernels(grad, output, 1, kernel=kernel)
    assert torch.equal(ours.isnan(), theirs.isnan())
    assert torch.equal(ours[ours.isinf()], theirs[theirs.isinf()])
    # exp(-inf) * sum(grad) takes nothing from grad.
    for untouched in ((4, slice(None, None, 2)), (5,)):
        assert torch.equal(ours[untouched], grad[untouched])


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_less_accurate_than_torchs_cpu_kernel(dtype):
    ours = theirs = 0.0
    for shape, dim in (((500, 46), 1), ((64, 1000), 1), ((20, 4096), 1), ((20000, 4), 0),
                       ((9, 150, 64), 1), ((2, 30522), 1), ((20, 16385), 1)):  # fmt: skip
        tensors = random_tensors(*shape, dim=dim, dtype=dtype)
        expected = reference(*tensors, dim)
        ours = max(ours, (kernels(*tensors, dim) - expected).abs().max().item())
        theirs = max(theirs, (_backward(*tensors, dim, dtype) - expected).abs().max().item())
    assert ours <= theirs


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kernel", "shape"), SANITIZED)
def test_the_sanitizer_has_nothing_to_report(kernel, shape, dtype):
    check(*random_tensors(*shape, dtype=dtype), 1, kernel=kernel, sanitize=True)


def test_compiles_for_every_metal_version(sources):
    kernels = sources.kernels.with_name("LogSoftmaxBackward.metal")
    for version in (310, 400):
        compile_shader(kernels, include_dirs=sources.include_dirs, metal_version=version)


def test_rows_of_further_grid_layers(sources):
    """A grid axis is full at 2^31 rows; a grid cut short stands in for so many."""
    library = compile_shader(
        sources.kernels.with_name("LogSoftmaxBackward.metal"), include_dirs=sources.include_dirs
    )
    grad, output = random_tensors(10, 50)
    for kernel, grid, group in (
        (ROW, (16, 4, 3), (16, 2, 1)),
        (LONG_ROW, (32, 4, 3), (32, 2, 1)),
        (STRIDED, (4, 8, 3), (2, 8, 1)),
    ):
        plan = BackwardPlanner(sources).plan_tensors(grad, output, grad, 1, kernel=kernel)
        grad_input = torch.full((12, 50), 1e4)
        run_backward_plan(library, with_grid(plan, grid, group), grad, output, grad_input)
        assert_rounded(grad_input[:10], grad, output, 1)
        assert (grad_input[10:] == 1e4).all()


def with_grid(plan: Plan, grid: tuple[int, int, int], group: tuple[int, int, int]) -> Plan:
    return replace(plan, launches=(replace(plan.launches[0], grid=grid, group=group),))


@pytest.fixture
def sparse() -> Iterator[torch.Tensor]:
    """Half-precision elements past 2^32, of which only the touched pages exist."""
    memory = mmap.mmap(-1, 2 * (2**32 + 2**20), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    yield torch.frombuffer(memory, dtype=torch.float16)


@pytest.mark.parametrize("kernel", list(BackwardKernel))
@pytest.mark.parametrize("which", ["grad", "output", "grad_input"])
def test_offsets_past_32_bits(sparse, kernel, which):
    size = 500
    tensors = dict(
        zip(("grad", "output"), random_tensors(2, size, dtype=torch.float16), strict=True),
        grad_input=torch.ones(2, size, dtype=torch.float16),
    )
    far = sparse.as_strided((2, size), (2**32 + 64, 1))
    tensors[which] = far.copy_(tensors[which])
    grad, output, grad_input = tensors.values()
    with OpUnderTest(backward_kernel=kernel) as op:
        _backward.out(grad, output, 1, torch.float16, out=grad_input)
    assert all(name.endswith("_u64") for name in op.launches)
    assert_rounded(grad_input, grad, output, 1)


def load_upstream_tests(sources: PatchSources) -> ModuleType:
    path = sources.patch_dir / "test/test_mps_log_softmax_backward.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tests_that_go_upstream_pass_with_every_kernel(sources):
    # As many cores as the largest Apple GPU has: the most rows must be there for no split.
    suite = unittest.defaultTestLoader.loadTestsFromModule(load_upstream_tests(sources))
    result = unittest.TestResult()
    with OpUnderTest(cores=80) as op:
        suite.run(result)
    assert not result.skipped
    assert result.wasSuccessful(), "\n".join(text for _, text in (*result.failures, *result.errors))
    for dtype in METAL_DTYPES.values():
        op.require_launches(
            *(
                f"log_softmax_backward_{kernel}{dtype}_u32"
                for kernel in ("row_", "long_row_", "partial_", "finalize_", "")
            )
        )

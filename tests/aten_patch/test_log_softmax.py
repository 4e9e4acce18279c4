"""The patch's kernels against float64, on the cpu backend."""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mpskit.metal import compile_shader
from mpskit.verify.launch import run_plan
from mpskit.verify.op_under_test import OpUnderTest
from mpskit.verify.plan import METAL_DTYPES, Index, Kernel, Plan, Planner
from mpskit.verify.sources import PatchSources

DTYPES = list(METAL_DTYPES)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def sources() -> PatchSources:
    return PatchSources.find()


def reference(x: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.log_softmax(x.double(), dim)


def kernels(x: torch.Tensor, dim: int, **how) -> torch.Tensor:
    with OpUnderTest(**how) as op:
        out = torch.log_softmax(x, dim)
    op.require_launches()
    return out


def assert_rounded(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """``actual`` is ``expected``, from float64, after float32 arithmetic and one rounding."""
    eps = torch.finfo(actual.dtype).eps
    rtol = 2 * eps if actual.dtype is torch.float32 else 0.51 * eps
    torch.testing.assert_close(actual.double(), expected, rtol=rtol, atol=5e-7, equal_nan=True)


@pytest.mark.parametrize("index", list(Index))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("kernel", "size"),
    [
        *((Kernel.ROW, size) for size in (1, 31, 32, 33, 255, 257, 1000, 4097, 16384)),
        *((Kernel.LONG_ROW, size) for size in (1, 33, 257, 4097, 30522, 70001)),
        *((Kernel.SPLIT, size) for size in (1, 33, 2048, 2049, 4097, 30522)),
        *((Kernel.STRIDED, size) for size in (1, 7, 33, 257, 512)),
        *((Kernel.LONG_STRIDED, size) for size in (1, 33, 257, 2049, 4097)),
        *((Kernel.TRANSPOSE, size) for size in (1, 7, 32, 33, 257, 1000, 2048)),
    ],
)
def test_every_kernel(kernel, size, dtype, index):
    x = (torch.randn(3, size) * 6).to(dtype)
    assert_rounded(kernels(x, 1, kernel=kernel, index=index), reference(x, 1))
    columns = x[:, :2000].t().contiguous()
    assert_rounded(kernels(columns, 0, kernel=kernel, index=index), reference(columns, 0))


@pytest.mark.parametrize("kernel", list(Kernel))
@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_at_any_alignment(kernel, dtype):
    """Rows that begin and end at each place between two vectors, in input and output."""
    for size in (64, 65, 79, 130):
        for shift, out_shift in itertools.product((0, 1, 3, 8), (0, 1, 3)):
            x = (torch.randn(9, size + shift) * 6).to(dtype)[:, shift:]
            out = torch.full((9, size + out_shift), 1.0).to(dtype)[:, out_shift:]
            with OpUnderTest(kernel=kernel) as op:
                torch._log_softmax(x, 1, False, out=out)
            op.require_launches()
            assert_rounded(out, reference(x, 1))


@pytest.mark.parametrize("kernel", [Kernel.STRIDED, Kernel.LONG_STRIDED, Kernel.TRANSPOSE])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 8, 40, 150, 512])
def test_rows_side_by_side(kernel, dtype, size):
    """In vectors and one by one, in more and in fewer threadgroups than the grid is wide."""
    for inner in ((8, 8), (3, 5), (16, 24)):
        x = (torch.randn(2, size, *inner) * 6).to(dtype)
        channels_last = x.to(memory_format=torch.channels_last)
        for image in (x, channels_last):
            out = torch.full(x.shape, 1.0).to(dtype)
            with OpUnderTest(kernel=kernel) as op:
                torch._log_softmax(image, 1, False, out=out)
            op.require_launches()
            assert_rounded(out, reference(x, 1))


@st.composite
def views(draw) -> tuple[torch.Tensor, torch.Tensor]:
    """An input and an output of one shape, each a view of its own kind."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    order = draw(st.permutations(range(len(sizes))))
    steps = draw(st.lists(st.sampled_from((1, 1, 2)), min_size=len(sizes), max_size=len(sizes)))

    def view(fill: float | None) -> torch.Tensor:
        memory = [sizes[d] * steps[d] for d in order]
        base = torch.randn(memory) if fill is None else torch.full(memory, fill)
        permuted = base.permute(sorted(range(len(order)), key=order.__getitem__))
        return permuted[tuple(slice(None, None, step) for step in steps)]

    x = view(None)
    order = draw(st.permutations(range(len(sizes))))
    out = view(1.0)
    for d in range(len(sizes)):
        if draw(st.integers(0, 5)) == 0:
            x = x.narrow(d, 0, 1).expand(sizes)
    return x, out


@settings(max_examples=60, deadline=None)
@given(views(), st.data())
def test_any_layout(tensors, data):
    x, out = tensors
    dim = data.draw(st.integers(0, x.dim() - 1))
    how = {
        "kernel": data.draw(st.sampled_from((None, *Kernel))),
        "index": data.draw(st.sampled_from((None, *Index))),
    }
    expected = reference(x, dim)
    base = out._base if out._base is not None else out
    untouched = int((base == 1).sum()) - out.numel()
    with OpUnderTest(**how) as op:
        torch._log_softmax(x, dim, False, out=out)
    op.require_launches()
    assert_rounded(out, expected)
    assert int((base == 1).sum()) == untouched


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_less_accurate_than_torchs_cpu_kernel(dtype):
    ours = theirs = 0.0
    for shape, dim in (((500, 46), 1), ((64, 1000), 1), ((20, 4096), 1), ((40000, 4), 0),
                       ((9, 150, 64), 1), ((2, 30522), 1), ((64, 16385), 1)):  # fmt: skip
        x = (torch.randn(shape) * 4).to(dtype)
        expected = reference(x, dim)
        ours = max(ours, (kernels(x, dim) - expected).abs().max().item())
        theirs = max(theirs, (torch.log_softmax(x, dim) - expected).abs().max().item())
    assert ours <= theirs


def test_compiles_for_every_metal_version(sources):
    for version in (310, 320, 400):
        compile_shader(sources.kernels, include_dirs=sources.include_dirs, metal_version=version)


def test_rows_of_further_grid_layers(sources):
    """A grid axis is full at 2^31 rows; a grid cut short stands in for so many."""
    library = compile_shader(sources.kernels, include_dirs=sources.include_dirs)
    x = torch.randn(10, 50)
    for kernel, grid, group in (
        (Kernel.ROW, (16, 4, 3), (16, 2, 1)),
        (Kernel.LONG_ROW, (32, 4, 3), (32, 2, 1)),
        (Kernel.STRIDED, (4, 8, 3), (2, 8, 1)),
        (Kernel.LONG_STRIDED, (4, 8, 3), (2, 8, 1)),
        (Kernel.TRANSPOSE, (4, 4, 3), (4, 4, 1)),
    ):
        plan = Planner(sources).plan_tensors(x, x, 1, kernel=kernel)
        out = torch.ones(12, 50)
        run_plan(library, with_grid(plan, grid, group), x, out)
        assert_rounded(out[:10], reference(x, 1))
        assert (out[10:] == 1).all()


def with_grid(plan: Plan, grid: tuple[int, int, int], group: tuple[int, int, int]) -> Plan:
    return replace(plan, launches=(replace(plan.launches[0], grid=grid, group=group),))


@pytest.fixture
def sparse() -> Iterator[torch.Tensor]:
    """Half-precision elements past 2^32, of which only the touched pages exist."""
    memory = mmap.mmap(-1, 2 * (2**32 + 2**20), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    yield torch.frombuffer(memory, dtype=torch.float16)


@pytest.mark.parametrize("kernel", list(Kernel))
def test_offsets_past_32_bits(sparse, kernel):
    size = 500 if kernel is Kernel.STRIDED else 3000
    far = sparse.as_strided((2, size), (2**32 + 64, 1))
    x = torch.randn(2, size).half()
    far.copy_(x)
    for view, out in ((far, torch.empty(2, size).half()), (x, far)):
        with OpUnderTest(kernel=kernel) as op:
            torch._log_softmax(view, 1, False, out=out)
        assert all(name.endswith("_u64") for name in op.launches)
        assert_rounded(out, reference(x, 1))

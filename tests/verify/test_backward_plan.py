"""LogSoftmaxBackwardPlan.h, as compiled: what its three tensors make different from the forward."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpskit.errors import MpskitError
from mpskit.verify.plan import METAL_DTYPES, BackwardKernel, BackwardPlanner, Index, Plan
from mpskit.verify.sources import PatchSources

MAX_U32 = 2**32 - 1
PLANNER = BackwardPlanner(PatchSources.find())


def plan_shape(sizes, dim, dtype=torch.float32, **how) -> Plan:
    strides = torch.empty(sizes, device="meta").stride()
    return PLANNER.plan(sizes, strides, strides, strides, dim, dtype, **how)


@st.composite
def layouts(draw, max_ndim=4, max_size=5):
    """Sizes, strides of grad, output and grad_input, and dim, as of views; grad may be expanded."""
    sizes = draw(st.lists(st.integers(1, max_size), min_size=1, max_size=max_ndim))

    def strides():
        order = draw(st.permutations(range(len(sizes))))
        step, result = 1, [0] * len(sizes)
        for d in order:
            step *= draw(st.sampled_from((1, 1, 1, 2, 3)))
            result[d] = step
            step *= sizes[d]
        return result

    grad = [stride * draw(st.sampled_from((1, 1, 1, 0))) for stride in strides()]
    return sizes, grad, strides(), strides(), draw(st.integers(0, len(sizes) - 1))


def offsets(params):
    """Of each element, by tensor, as the kernels compute them from the parameters."""
    for row in range(params.rows):
        at, left = [0, 0, 0], row
        for dim in params.row_dims:
            left, index = divmod(left, dim.size)
            at = [a + index * stride for a, stride in zip(at, dim.strides, strict=True)]
        for i in range(params.dim_size):
            yield tuple(a + i * s for a, s in zip(at, params.dim_strides, strict=True))


@given(layouts())
def test_coalescing_reaches_exactly_the_elements_of_each_tensor(layout):
    sizes, grad, output, grad_input, dim = layout
    expected = sorted(
        tuple(sum(i * s for i, s in zip(at, strides, strict=True)) for strides in tensors)
        for at in itertools.product(*map(range, sizes))
        for tensors in [(output, grad, grad_input)]
    )
    plan = PLANNER.plan(sizes, grad, output, grad_input, dim, torch.float32)
    assert sorted(offsets(plan.params)) == expected


@given(
    st.integers(1, 3000),
    st.integers(1, 20000),
    st.sampled_from((BackwardKernel.LONG_ROW, BackwardKernel.STRIDED)),
    st.booleans(),
)
def test_grid_covers_every_row_once_and_is_launchable(rows, size, kernel, innermost):
    sizes, dim = ((rows, size), 1) if innermost else ((size, rows), 0)
    plan = plan_shape(sizes, dim, kernel=kernel)
    (launch,) = plan.launches
    x, y, z = launch.grid
    row = kernel is BackwardKernel.LONG_ROW
    across = y if row else x * (4 if plan.params.vectors else 1)
    covered = [at + across * layer for layer in range(z) for at in range(across)]
    assert [row for row in covered if row < rows] == list(range(rows))
    assert math.prod(launch.group) <= 512
    assert launch.grid[0] == launch.group[0] if row else launch.grid[0] % launch.group[0] == 0


@given(st.integers(1, 300), st.integers(1, 10**7), st.integers(1, 128))
def test_chunks_cover_every_element_once(rows, size, cores):
    plan = plan_shape((rows, size), 1, kernel=BackwardKernel.SPLIT, cores=cores)
    params = plan.params
    assert (params.chunks - 1) * params.chunk_size < size <= params.chunks * params.chunk_size
    assert plan.partials == rows * params.chunks
    assert plan.partials_bytes == 4 * plan.partials
    partial, finalize = plan.launches
    assert partial.grid == finalize.grid == (partial.group[0], params.chunks, rows)


@pytest.mark.parametrize("kernel", list(BackwardKernel))
@pytest.mark.parametrize("dtype", list(METAL_DTYPES))
@pytest.mark.parametrize("index", list(Index))
def test_host_names(kernel, dtype, index):
    plan = plan_shape((8, 100), 1, dtype, kernel=kernel, index=index)
    stems = {
        BackwardKernel.ROW: ["log_softmax_backward_row"],
        BackwardKernel.SPLIT: ["log_softmax_backward_partial", "log_softmax_backward_finalize"],
        BackwardKernel.STRIDED: ["log_softmax_backward"],
        BackwardKernel.LONG_ROW: ["log_softmax_backward_long_row"],
    }
    suffix = f"_{METAL_DTYPES[dtype]}_{index.name.lower()}"
    assert [launch.kernel for launch in plan.launches] == [s + suffix for s in stems[kernel]]


@pytest.mark.parametrize(
    ("sizes", "dim", "kernel"),
    [
        ((), 0, BackwardKernel.ROW),
        ((32768, 1024), 1, BackwardKernel.ROW),
        ((64, 16384), 1, BackwardKernel.ROW),
        ((64, 16388), 1, BackwardKernel.LONG_ROW),
        ((64, 154880), 1, BackwardKernel.LONG_ROW),
        ((1, 4096), 1, BackwardKernel.ROW),
        ((1, 4097), 1, BackwardKernel.SPLIT),
        ((16, 4097), 1, BackwardKernel.ROW),
        ((32, 150, 64, 64), 1, BackwardKernel.STRIDED),
        ((100, 2000, 1), 1, BackwardKernel.ROW),
    ],
)
def test_choice_of_kernel(sizes, dim, kernel):
    assert plan_shape(sizes, dim, cores=16).kernel is kernel


@pytest.mark.parametrize("dtype", list(METAL_DTYPES))
def test_row_is_refused_what_registers_do_not_hold(dtype):
    longest = 1024 * 4 * 16 // dtype.itemsize
    plan = plan_shape((64, longest), 1, dtype, kernel=BackwardKernel.ROW)
    assert plan.launches[0].group == (1024, 1, 1)
    with pytest.raises(MpskitError, match="too long"):
        plan_shape((64, longest + 16), 1, dtype, kernel=BackwardKernel.ROW)


def test_the_outputs_order_in_memory_decides():
    image = torch.empty((8, 150, 64, 64), device="meta")
    channels_last = image.to(memory_format=torch.channels_last)
    for grad, output, kernel in (
        (image, channels_last, BackwardKernel.ROW),
        (channels_last, image, BackwardKernel.STRIDED),
    ):
        plan = PLANNER.plan_tensors(grad, output, channels_last, 1)
        assert plan.kernel is kernel


def index_width(grad_step, output_step, grad_input_step) -> Index:
    steps = (grad_step, output_step, grad_input_step)
    strides = [(step, 1) for step in steps]
    return PLANNER.plan((2, 9), *strides, 1, torch.float16).index


def test_u64_where_an_offset_of_any_tensor_needs_it():
    last = MAX_U32 - 8
    assert index_width(last, last, last) is Index.U32
    for tensor in range(3):
        steps = [last + (i == tensor) for i in range(3)]
        assert index_width(*steps) is Index.U64


@given(layouts())
def test_packed_parameters_hold_the_same_values(layout):
    sizes, grad, output, grad_input, dim = layout
    for index, word in ((Index.U32, "I"), (Index.U64, "Q")):
        plan = PLANNER.plan(sizes, grad, output, grad_input, dim, torch.float32, index=index)
        params = plan.params
        words = memoryview(plan.packed_params).cast(word).tolist()
        scalars = [params.rows, params.dim_size, *params.dim_strides]
        assert words[:7] == [*scalars, params.chunk_size, params.chunks]
        row_dims = words[9 if index is Index.U32 else 8 :]  # behind two 32-bit numbers
        for d, row_dim in enumerate(params.row_dims):
            assert row_dims[4 * d : 4 * d + 4] == [row_dim.size, *row_dim.strides]


def test_32_bits_that_do_not_suffice_are_refused():
    with pytest.raises(MpskitError, match="32-bit indices"):
        PLANNER.plan((2, 9), (9, 1), (2**33, 1), (9, 1), 1, torch.float32, index=Index.U32)

"""LogSoftmaxPlan.h, as compiled: properties of every plan, and the choices it makes."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mpskit.errors import MpskitError
from mpskit.verify.plan import (
    METAL_DTYPES,
    Index,
    Kernel,
    Params,
    Plan,
    Planner,
)
from mpskit.verify.sources import PatchSources

MAX_U32 = 2**32 - 1
MAX_THREADS = 1024
# The longest row of floats in the registers of log_softmax_row.
MAX_REGISTER_ROW = 16 * 1024
# As in LogSoftmaxPlan.h: no loop counts farther past its end.
OVERSHOOT = 32768
ALONG_ROWS = (Kernel.ROW, Kernel.LONG_ROW, Kernel.TRANSPOSE)


PLANNER = Planner(PatchSources.find())


def contiguous(sizes):
    return torch.empty(sizes, device="meta").stride()


def plan_shape(sizes, dim, dtype=torch.float32, **how) -> Plan:
    strides = contiguous(sizes)
    return PLANNER.plan(sizes, strides, strides, dim, dtype, **how)


@st.composite
def layouts(draw, max_ndim=5, max_size=6):
    """Sizes, input strides, output strides and dim, as of views of contiguous tensors."""
    sizes = draw(st.lists(st.integers(1, max_size), min_size=1, max_size=max_ndim))

    def strides(expandable):
        order = draw(st.permutations(range(len(sizes))))
        step, result = 1, [0] * len(sizes)
        for d in order:
            step *= draw(st.sampled_from((1, 1, 1, 2, 3)))
            result[d] = step
            step *= sizes[d]
        if expandable:
            result = [0 if draw(st.integers(0, 5)) == 0 else stride for stride in result]
        return result

    return sizes, strides(True), strides(False), draw(st.integers(0, len(sizes) - 1))


def row_offsets(params: Params, row: int) -> tuple[int, int]:
    """The offsets that the kernels compute for a row."""
    read = written = 0
    for dim in params.row_dims:
        row, index = divmod(row, dim.size)
        read += index * dim.strides[0]
        written += index * dim.strides[1]
    assert row == 0
    return read, written


def expected_pairs(sizes, input_strides, output_strides):
    """The offsets that each element is read from and written to, by brute force."""
    for indices in itertools.product(*map(range, sizes)):
        yield (
            sum(i * s for i, s in zip(indices, input_strides, strict=True)),
            sum(i * s for i, s in zip(indices, output_strides, strict=True)),
        )


@given(layouts())
def test_coalescing_reaches_exactly_the_elements(layout):
    sizes, input_strides, output_strides, dim = layout
    params = PLANNER.plan(sizes, input_strides, output_strides, dim, torch.float32).params
    pairs = []
    for row in range(params.rows):
        read, written = row_offsets(params, row)
        pairs += [
            (read + i * params.dim_strides[0], written + i * params.dim_strides[1])
            for i in range(params.dim_size)
        ]
    assert sorted(pairs) == sorted(expected_pairs(sizes, input_strides, output_strides))


@given(layouts())
def test_a_row_is_a_line_along_the_reduced_dimension(layout):
    sizes, input_strides, output_strides, dim = layout
    params = PLANNER.plan(sizes, input_strides, output_strides, dim, torch.float32).params
    assert params.dim_size == sizes[dim]
    if sizes[dim] > 1:
        assert params.dim_strides == (input_strides[dim], output_strides[dim])


def vector_size(plan: Plan, dtype=torch.float32) -> int:
    return 16 // dtype.itemsize if plan.params.vectors else 1


def rows_of_grid(plan: Plan) -> list[int]:
    """How often each row is worked on, by the arithmetic of the kernels."""
    (launch,) = plan.launches
    x, y, z = launch.grid
    across = y if plan.kernel in ALONG_ROWS else x * vector_size(plan)
    return [place + across * layer for layer in range(z) for place in range(across)]


forced_kernels = st.sampled_from(list(Kernel))
one_launch = st.sampled_from([kernel for kernel in Kernel if kernel is not Kernel.SPLIT])
row_counts = st.integers(1, 3000)
row_sizes = st.one_of(st.integers(1, 500), st.integers(1, MAX_REGISTER_ROW))


def plan_if_possible(sizes, dim, kernel) -> Plan:
    try:
        return plan_shape(sizes, dim, kernel=kernel)
    except MpskitError:
        assume(False)


@given(row_counts, row_sizes, one_launch, st.booleans())
def test_grid_covers_every_row_once(rows, size, kernel, innermost):
    sizes, dim = ((rows, size), 1) if innermost else ((size, rows), 0)
    plan = plan_if_possible(sizes, dim, kernel)
    covered = [row for row in rows_of_grid(plan) if row < rows]
    assert covered == list(range(rows))


@pytest.mark.parametrize("kernel", [kernel for kernel in Kernel if kernel is not Kernel.SPLIT])
@pytest.mark.parametrize("rows", [2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 5 * 2**32 + 7])
def test_rows_past_a_grid_axis_go_to_the_next(rows, kernel):
    plan = plan_shape((rows, 2), 1, kernel=kernel)
    (launch,) = plan.launches
    across = launch.grid[1 if kernel in ALONG_ROWS else 0] * vector_size(plan)
    assert across <= 2**31 + MAX_THREADS
    assert across * launch.grid[2] >= rows
    assert across * (launch.grid[2] - 1) < rows


@given(row_counts, row_sizes, forced_kernels, st.booleans())
def test_threadgroups_are_launchable(rows, size, kernel, innermost):
    sizes, dim = ((rows, size), 1) if innermost else ((size, rows), 0)
    most = 512 if kernel in (Kernel.STRIDED, Kernel.LONG_STRIDED, Kernel.TRANSPOSE) else MAX_THREADS
    for launch in plan_if_possible(sizes, dim, kernel).launches:
        assert math.prod(launch.group) <= most
        assert all(0 < group <= grid for group, grid in zip(launch.group, launch.grid, strict=True))


@given(row_counts, row_sizes, st.sampled_from((Kernel.ROW, Kernel.LONG_ROW)), st.booleans())
def test_rows_are_of_whole_simdgroups_or_share_one(rows, size, kernel, innermost):
    sizes, dim = ((rows, size), 1) if innermost else ((size, rows), 0)
    plan = plan_if_possible(sizes, dim, kernel)
    (launch,) = plan.launches
    threads, rows_per_group, _ = launch.group
    assert launch.grid[0] == threads
    assert threads % 32 == 0 if threads > 32 else threads.bit_count() == 1
    assert rows_per_group == 1 or threads <= 32


@given(row_counts, row_sizes, st.booleans())
def test_rows_fit_into_registers(rows, size, innermost):
    sizes, dim = ((rows, size), 1) if innermost else ((size, rows), 0)
    for kernel, vectors in ((Kernel.ROW, 4), (Kernel.STRIDED, 16)):
        plan = plan_if_possible(sizes, dim, kernel)
        (launch,) = plan.launches
        held = vectors if plan.params.vectors else 2 * vectors
        if kernel is Kernel.ROW:
            assert launch.grid[0] * held * vector_size(plan) >= size
        else:
            assert launch.grid[1] * held >= size


@given(row_counts, row_sizes, st.sampled_from((Kernel.STRIDED, Kernel.LONG_STRIDED)), st.booleans())
def test_strided_threadgroups_combine_evenly(rows, size, kernel, innermost):
    sizes, dim = ((rows, size), 1) if innermost else ((size, rows), 0)
    plan = plan_if_possible(sizes, dim, kernel)
    (launch,) = plan.launches
    columns, slices, _ = launch.group
    assert launch.grid[1] == slices
    assert columns.bit_count() == 1
    if slices > 1:
        # Each simdgroup has every column, and its share of threadgroup memory.
        threads = columns * slices
        assert columns <= 32
        assert threads % 32 == 0 if threads > 32 else slices.bit_count() == 1
        assert threads <= 32 or columns * vector_size(plan) <= 64
    # No threadgroup is cut off at the grid's edge: a shorter one would mix up its slices.
    assert launch.grid[0] % columns == 0


@given(row_counts, row_sizes, st.booleans())
def test_transposing_threadgroups_are_squares_of_powers_of_two(rows, size, innermost):
    sizes, dim = ((rows, size), 1) if innermost else ((size, rows), 0)
    plan = plan_shape(sizes, dim, kernel=Kernel.TRANSPOSE)
    (launch,) = plan.launches
    threads, rows_per_group, _ = launch.group
    assert launch.grid[0] == threads <= 32
    assert threads.bit_count() == rows_per_group.bit_count() == 1
    assert launch.grid[1] % rows_per_group == 0


@given(st.integers(1, 300), st.integers(1, 10**7), st.integers(1, 128))
def test_chunks_cover_every_element_once(rows, size, cores):
    plan = plan_shape((rows, size), 1, kernel=Kernel.SPLIT, cores=cores)
    params = plan.params
    assert (params.chunks - 1) * params.chunk_size < size <= params.chunks * params.chunk_size
    assert plan.partials == rows * params.chunks
    assert plan.partials_bytes == 8 * plan.partials
    partial, finalize = plan.launches
    assert partial.grid == finalize.grid == (partial.group[0], params.chunks, rows)
    assert partial.group == finalize.group
    assert partial.group[0] % 32 == 0
    assert partial.group[1:] == (1, 1)


@pytest.mark.parametrize("kernel", list(Kernel))
@pytest.mark.parametrize("dtype", list(METAL_DTYPES))
@pytest.mark.parametrize("index", list(Index))
def test_host_names(kernel, dtype, index):
    plan = plan_shape((8, 100), 1, dtype, kernel=kernel, index=index)
    stems = {
        Kernel.ROW: ["log_softmax_row"],
        Kernel.SPLIT: ["log_softmax_partial", "log_softmax_finalize"],
        Kernel.STRIDED: ["log_softmax"],
        Kernel.LONG_STRIDED: ["log_softmax_long"],
        Kernel.TRANSPOSE: ["log_softmax_transpose"],
        Kernel.LONG_ROW: ["log_softmax_long_row"],
    }
    suffix = f"_{METAL_DTYPES[dtype]}_{index.name.lower()}"
    assert [launch.kernel for launch in plan.launches] == [s + suffix for s in stems[kernel]]


@pytest.mark.parametrize(
    ("sizes", "dim", "kernel"),
    [
        ((), 0, Kernel.ROW),
        ((1000, 1), 1, Kernel.ROW),
        ((1000, 8), 1, Kernel.ROW),
        ((32768, 1024), 1, Kernel.ROW),
        ((32768, 4096), 1, Kernel.ROW),
        ((32768, 4097), 1, Kernel.LONG_ROW),
        ((8192, 16384), 1, Kernel.LONG_ROW),
        ((8, 512, 30522), 2, Kernel.LONG_ROW),
        ((2048, 154880), 1, Kernel.LONG_ROW),
        ((1, 4096), 1, Kernel.ROW),
        ((1, 4097), 1, Kernel.SPLIT),
        ((15, 4097), 1, Kernel.SPLIT),
        ((16, 4097), 1, Kernel.LONG_ROW),
        ((63, 32769), 1, Kernel.SPLIT),
        ((64, 32769), 1, Kernel.LONG_ROW),
        ((1, 151936), 1, Kernel.SPLIT),
        ((10**6, 2), 0, Kernel.SPLIT),
        ((32, 150, 64, 64), 1, Kernel.STRIDED),
        ((32, 2048, 64, 64), 1, Kernel.STRIDED),
        ((32, 2049, 64, 64), 1, Kernel.LONG_STRIDED),
        ((100, 2000, 1), 1, Kernel.ROW),
    ],
)
def test_choice_of_kernel(sizes, dim, kernel):
    assert plan_shape(sizes, dim, cores=16).kernel is kernel


def test_strides_decide_not_the_position_of_dim():
    image = torch.empty((8, 150, 64, 64), device="meta").to(memory_format=torch.channels_last)
    plan = PLANNER.plan_tensors(image, image, 1)
    assert plan.kernel is Kernel.ROW
    assert len(plan.params.row_dims) == 1
    contiguous_image = torch.empty((8, 150, 64, 64), device="meta")
    assert PLANNER.plan_tensors(image, contiguous_image, 1).kernel is Kernel.TRANSPOSE
    assert PLANNER.plan_tensors(contiguous_image, image, 1).kernel is Kernel.STRIDED
    transposed = torch.empty((500, 300), device="meta").t()
    assert PLANNER.plan_tensors(transposed, transposed, 0).kernel is Kernel.ROW
    assert PLANNER.plan_tensors(transposed, transposed, -1).kernel is Kernel.STRIDED


def test_neighbouring_columns_are_neighbouring_rows():
    plan = plan_shape((4, 150, 64, 64), 1)
    innermost, outer = plan.params.row_dims
    assert (innermost.size, innermost.strides[0]) == (64 * 64, 1)
    assert outer.size == 4
    assert plan.params.vectors
    (launch,) = plan.launches
    assert 4 * launch.group[0] >= 32


@pytest.mark.parametrize("dtype", list(METAL_DTYPES))
def test_vectors_where_memory_lies_that_way(dtype):
    size = 16 // dtype.itemsize

    def vectors(sizes, strides, dim, offsets=(0, 0)):
        return PLANNER.plan(sizes, strides, strides, dim, dtype, offsets=offsets).params.vectors

    assert vectors((100, 1000), (1001, 1), 1, offsets=(2, 4))
    assert not vectors((100, 1000), (2000, 2), 1)
    assert not vectors((100, 4), (4, 1), 1)
    assert vectors((100, 10 * size), (10 * size, 1), 0)
    assert not vectors((100, 10 * size), (10 * size, 1), 0, offsets=(0, dtype.itemsize))
    assert not vectors((100, 10 * size), (10 * size + 1, 1), 0)
    assert not vectors((100, 10 * size + 1), (20 * size, 1), 0)
    assert vectors((3, 100, 10 * size), (1000 * size, 10 * size, 1), 1)
    assert not vectors((3, 100, 10 * size), (1000 * size + 1, 10 * size, 1), 1)


def index_width(sizes, input_strides, output_strides, dim) -> Index:
    return PLANNER.plan(sizes, input_strides, output_strides, dim, torch.float16).index


def test_u64_exactly_where_an_offset_needs_it():
    assert index_width((2, 9), (MAX_U32 - 8, 1), (9, 1), 1) is Index.U32
    assert index_width((2, 9), (MAX_U32 - 7, 1), (9, 1), 1) is Index.U64
    assert index_width((2, 9), (9, 1), (MAX_U32 - 8, 1), 1) is Index.U32
    assert index_width((2, 9), (9, 1), (MAX_U32 - 7, 1), 1) is Index.U64


def test_u64_where_only_the_sum_over_dimensions_needs_it():
    half = 2**31
    assert index_width((2, 2, 9), (half, half // 2, 1), (18, 9, 1), 2) is Index.U32
    assert index_width((2, 2, 9), (half, half - 8, 1), (18, 9, 1), 2) is Index.U64
    # The reduced dimension's own stride counts as well.
    assert index_width((3, 9), (9, half), (9, 1), 1) is Index.U64


def test_u64_where_a_loop_counts_past_the_end_in_32_bits():
    for count in (MAX_U32 - OVERSHOOT, MAX_U32 - OVERSHOOT + 1):
        expected = Index.U32 if count + OVERSHOOT <= MAX_U32 else Index.U64
        assert index_width((count,), (0,), (1,), 0) is expected
        assert index_width((count, 1), (0, 1), (1, 1), 1) is expected


def test_strides_of_single_elements_need_no_width():
    assert index_width((1, 9), (2**40, 1), (2**40, 1), 1) is Index.U32
    assert index_width((9, 1), (1, 2**40), (1, 2**40), 1) is Index.U32


@given(layouts())
def test_packed_parameters_hold_the_same_values(layout):
    sizes, input_strides, output_strides, dim = layout
    for index, word in ((Index.U32, "I"), (Index.U64, "Q")):
        plan = PLANNER.plan(sizes, input_strides, output_strides, dim, torch.float32, index=index)
        words = memoryview(plan.packed_params).cast(word).tolist()
        params = plan.params
        scalars = [params.rows, params.dim_size, *params.dim_strides]
        assert words[:6] == [*scalars, params.chunk_size, params.chunks]
        end = 6 * (4 if index is Index.U32 else 8)
        flags = memoryview(plan.packed_params)[end : end + 8].cast("I").tolist()
        assert flags == [len(params.row_dims), params.vectors]
        row_dims = memoryview(plan.packed_params)[end + 8 :].cast(word).tolist()
        for d, row_dim in enumerate(params.row_dims):
            assert row_dims[3 * d : 3 * d + 3] == [row_dim.size, *row_dim.strides]


def test_what_cannot_be_forced_is_refused():
    with pytest.raises(MpskitError, match="row kernel cannot run"):
        plan_shape((4, MAX_REGISTER_ROW + 1), 1, kernel=Kernel.ROW)
    with pytest.raises(MpskitError, match="32-bit indices"):
        PLANNER.plan((2, 9), (2**33, 1), (9, 1), 1, torch.float32, index=Index.U32)


def test_more_dimensions_than_the_parameters_hold_are_refused():
    sizes = (2,) * 18
    strides = [3**d for d in range(18)]
    with pytest.raises(MpskitError, match="More than 16 dimensions"):
        PLANNER.plan(sizes, strides, strides, 0, torch.float32)
    assert len(plan_shape(sizes, 17).params.row_dims) == 1


@settings(max_examples=50)
@given(st.integers(1, 200), st.integers(1, 40000))
def test_more_cores_never_split_less(rows, size):
    kernels = [plan_shape((rows, size), 1, cores=cores).kernel for cores in (1, 8, 40, 132)]
    split = [kernel is Kernel.SPLIT for kernel in kernels]
    assert split == sorted(split)

"""The reference of log_softmax, its tolerance, and what its samples cover."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from mpskit.patching import load_patch_set
from mpskit.verify.accuracy import compare
from mpskit.verify.plan import Kernel
from opinfo.definition import MPS_FLOATING_DTYPES
from opinfo.definitions import DEFINITIONS, definition_of
from opinfo.definitions.log_softmax import LOG_SOFTMAX, large_index
from opinfo.definitions.log_softmax.forcings import planner
from opinfo.definitions.log_softmax.reference import reference, row_dim, row_length, tolerance

FLOAT = torch.float32


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """The samples are small, and pytest-xdist spreads the tests."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def _samples(variant: str, dtype: torch.dtype = FLOAT) -> Iterator[SampleInput]:
    return iter(LOG_SOFTMAX.entry(variant).sample_inputs("cpu", dtype))


@pytest.mark.parametrize("variant", ["reported", "dims", "layouts", "expanded", "empty"])
def test_reference_is_torchs_in_float64(variant: str) -> None:
    for sample in _samples(variant):
        expected = torch.log_softmax(sample.input.double(), *sample.args)
        torch.testing.assert_close(reference(sample), expected, equal_nan=True)


def test_reference_rounds_the_input_to_the_requested_dtype() -> None:
    sample = SampleInput(torch.tensor([0.1, 0.2]), args=(0,), kwargs={"dtype": torch.bfloat16})
    rounded = SampleInput(sample.input.bfloat16(), args=(0,))
    assert torch.equal(reference(sample), reference(rounded))


def test_wide_range_has_the_reported_values() -> None:
    expected = (
        *(-91.5657, -0.0353, -320.1991, -16.6978, -134.4017),
        *(-48.3303, -102.0046, -3.3621, -16.9869, -20.5634),
    )
    (wide,) = [sample for sample in _samples("reported") if sample.name == "wide range"]
    torch.testing.assert_close(
        reference(wide)[0], torch.tensor(expected).double(), atol=1e-4, rtol=0
    )


@pytest.mark.parametrize("dtype", MPS_FLOATING_DTYPES)
@pytest.mark.parametrize("variant", ["reported", "short_rows", "columns", "dims"])
def test_plain_float32_arithmetic_is_within_the_tolerance(variant: str, dtype: torch.dtype) -> None:
    for sample in _samples(variant, dtype):
        expected, (dim,) = reference(sample), sample.args
        shifted = sample.input.float() - sample.input.float().amax(dim, keepdim=True)
        result = (shifted - shifted.exp().sum(dim, keepdim=True).log()).to(dtype)
        comparison = compare(result, expected, tolerance(sample, expected, dtype))
        assert not comparison.failing, f"{sample.summary()}: {comparison}"


def test_a_sum_with_few_bits_exceeds_the_tolerance() -> None:
    sample = SampleInput(torch.linspace(-3, 3, 100), args=(0,))
    expected = reference(sample)
    shifted = sample.input - sample.input.max()
    coarse = shifted - shifted.exp().sum().bfloat16().float().log()
    assert compare(coarse, expected, tolerance(sample, expected, FLOAT)).failing


def test_every_row_length_and_row_count_occurs() -> None:
    lengths, rows = set(), set()
    for variant in ("short_rows", "medium_rows", "long_rows"):
        for sample in _samples(variant):
            lengths.add(row_length(sample))
            rows.add(sample.input.numel() // row_length(sample))
    assert lengths >= {
        *(1, 2, 31, 32, 33, 46, 127, 128, 129, 1000, 1023, 1024, 1025, 2047, 2048, 2049),
        *(4096, 4097, 30522, 51866, 151936),
    }
    assert rows >= {1, 2, 127, 128, 255, 256, 257}


def test_every_dim_of_one_to_five_dimensions_occurs() -> None:
    found = {(s.input.dim(), s.args[0]) for s in _samples("dims") if s.input.dim() <= 5}
    assert found == {(ndim, dim) for ndim in range(1, 6) for dim in range(-ndim, ndim)}


def test_thresholds_show_the_plan_on_both_sides() -> None:
    kernels: dict[int, list[Kernel]] = {}
    for sample in _samples("plan_thresholds"):
        plan = planner().plan_tensors(sample.input, sample.input, row_dim(sample))
        kernels.setdefault(row_length(sample), []).append(plan.kernel)
    assert len(kernels) > 1
    for length, chosen in kernels.items():
        assert all(a != b for a, b in zip(chosen[::2], chosen[1::2], strict=True)), length
    assert {Kernel.SPLIT, Kernel.LONG_ROW} <= {k for chosen in kernels.values() for k in chosen}


def test_every_branch_can_be_forced_on_some_sample() -> None:
    for forcing in LOG_SOFTMAX.forcings:
        assert any(forcing.applies(sample) for sample in _samples("forced")), forcing.name


def test_far_apart_samples_need_64_bits_and_little_memory() -> None:
    for name, size, strides in large_index.FAR_APART:
        tensor = large_index.far_apart(size, strides, torch.float16)
        last = sum((n - 1) * stride for n, stride in zip(size, strides, strict=True))
        assert last * tensor.element_size() >= 2**32 or "bytes" in name
        tensor.fill_(3)
        assert (tensor == 3).all()


def test_every_op_of_the_patch_set_has_a_definition() -> None:
    patched = {e.function for patch in load_patch_set().patches for e in patch.expects}
    assert patched <= {definition.function for definition in DEFINITIONS}


def test_entries_lead_to_their_definition() -> None:
    for definition in DEFINITIONS:
        for op in (*definition.upstream, *definition.ours):
            assert definition_of(op) is definition

"""The tensors that the suite lays out in memory."""

from __future__ import annotations

import pytest
import torch

from opinfo.layouts import LAYOUTS, Guarded, Shape, contiguous, expanded, fits, layouts, sliced

SHAPES = ((6,), (3, 5), (2, 3, 5), (2, 3, 4, 5), (2, 3, 4, 5, 3))


def _make(shape: Shape) -> torch.Tensor:
    return torch.zeros(shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_layouts_have_the_shape_and_elements_of_their_own(shape: Shape) -> None:
    for name, tensor in layouts(_make, shape):
        assert tuple(tensor.shape) == shape, name
        tensor += 1
        assert (tensor == 1).all(), name


def test_layouts_differ() -> None:
    found = {(t.stride(), t.storage_offset()) for _, t in layouts(_make, (2, 3, 4, 5))}
    assert len(found) == len(LAYOUTS)


def test_channels_last_is_what_torch_calls_so() -> None:
    tensors = dict(layouts(_make, (2, 3, 4, 5)))
    assert tensors["channels_last"].is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("shape", SHAPES)
def test_expanded_has_stride_0_along_each_dimension(shape: Shape) -> None:
    tensors = dict(expanded(_make, shape))
    for dim in range(len(shape)):
        assert tensors[f"expanded along {dim}"].stride(dim) == 0
        assert tuple(tensors[f"expanded along {dim}"].shape) == shape


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_guard_sees_what_is_written_beside_its_tensor(layout) -> None:
    shape = (2, 3, 4, 5)
    assert fits(layout, shape)
    guarded = Guarded(layout, shape, dtype=torch.float16, device=torch.device("cpu"))
    guarded.tensor.zero_()
    assert guarded.damaged() == 0


def test_a_guard_counts_damage() -> None:
    guarded = Guarded(sliced, (2, 5), dtype=torch.float32, device=torch.device("cpu"))
    torch.as_strided(guarded.tensor, (16,), (1,), 0).zero_()
    assert guarded.damaged() == 6
    assert Guarded(contiguous, (4,), dtype=torch.float32, device=torch.device("cpu")).damaged() == 0

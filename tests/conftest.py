"""Marks that depend on the machine."""

from __future__ import annotations

import pytest


def pytest_runtest_setup(item: pytest.Item) -> None:
    import torch

    if (mark := item.get_closest_marker("requires_mps")) and not torch.backends.mps.is_available():
        pytest.skip(f"needs a Mac's GPU; here {mark.args[0]}")
    if (mark := item.get_closest_marker("requires_cuda")) and not torch.cuda.is_available():
        pytest.skip(f"needs an NVIDIA GPU; here {mark.args[0]}")

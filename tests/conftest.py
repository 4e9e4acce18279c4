"""Marks that depend on the machine."""

from __future__ import annotations

import pytest


def pytest_runtest_setup(item: pytest.Item) -> None:
    mark = item.get_closest_marker("requires_mps")
    if mark is None:
        return
    import torch

    if not torch.backends.mps.is_available():
        pytest.skip(f"needs a Mac's GPU; here {mark.args[0]}")

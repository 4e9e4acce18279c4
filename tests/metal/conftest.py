"""The backends that compile Metal themselves; tests that use these fixtures run on each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from mpskit import metal

ON_THE_CPU = "the cpu backend compiles the same source and passes the same test"


@pytest.fixture(
    scope="module",
    params=["cpu", pytest.param("cuda", marks=pytest.mark.requires_cuda(ON_THE_CPU))],
)
def backend(request: pytest.FixtureRequest) -> str:
    """A backend's name, which is also that of its tensors' device."""
    return request.param


class StagedLibrary:
    """A library whose kernels take CPU tensors: copied to the device before, and back behind."""

    def __init__(self, library: Any, device: str) -> None:
        self._library = library
        self._device = device

    def __getattr__(self, name: str) -> Callable[..., None]:
        kernel = getattr(self._library, name)

        def call(*args: Any, **kwargs: Any) -> None:
            staged = [self._stage(a) if isinstance(a, torch.Tensor) else a for a in args]
            kernel(*staged, **kwargs)
            for argument, copy in zip(args, staged, strict=True):
                if argument is not copy:
                    argument.copy_(copy)

        return call

    def _stage(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor itself, or a copy on the device with the same offset and strides."""
        if tensor.device.type == self._device:
            return tensor
        storage = torch.UntypedStorage(tensor.untyped_storage().nbytes(), device=self._device)
        storage.copy_(tensor.untyped_storage())
        copy = torch.empty(0, dtype=tensor.dtype, device=self._device)
        return copy.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


@pytest.fixture(scope="module")
def compile_shader(backend: str) -> Callable[..., StagedLibrary]:
    """`mpskit.metal.compile_shader` for tests of what kernels compute, with tensors on the CPU."""
    return lambda source, **options: StagedLibrary(
        metal.compile_shader(source, backend=backend, **options), backend
    )

"""What a patch puts into PyTorch's test/test_mps.py, made to run on any machine.

The file itself needs a Mac even to be imported. A stand-in has the names that tests in it count
on and the places where they go; with a patch's edits made in it, it is a test file of its own,
whose tests run on another device in place of ``mps``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from mpskit.checkout.skeleton import stand_in
from mpskit.errors import MpskitError
from mpskit.patching import Patch
from mpskit.patching.edits import InsertAfter, InsertBefore, State

PATH = "test/test_mps.py"
_CLASS = re.compile(r"^class (\w+)\(TestCaseMPS\):", re.MULTILINE)


def patched_stand_in(patch: Patch) -> str | None:
    """The stand-in with the patch's edits of test_mps.py made; None where it has none.

    Raises:
        MpskitError: an edit has no place in it.
    """
    text = original = stand_in(PATH)
    for edit in patch.edits:
        if edit.path != PATH:
            continue
        outcome = edit.evaluate(text, lambda path: None)
        if outcome.state is State.IMPOSSIBLE:
            raise MpskitError(
                f"mpskit's stand-in for {PATH}: {outcome.reason}.",
                hint="Put the anchor there, so that the tests can run without a Mac.",
            )
        text = outcome.text or text
    return None if text == original else text


def classes_of(patch: Patch) -> list[str]:
    """Names of the test classes that the patch puts into test_mps.py."""
    insertions = (edit for edit in patch.edits if isinstance(edit, InsertAfter | InsertBefore))
    texts = (edit.text for edit in insertions if edit.path == PATH)
    return [name for text in texts for name in _CLASS.findall(text)]


class InPlaceOfMps(TorchFunctionMode):
    """While active, what asks for the device ``mps`` gets ``device``."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        args, kwargs = tree_map(self._moved, (args, kwargs or {}))
        return func(*args, **kwargs)

    def _moved(self, value: Any) -> Any:
        is_device = isinstance(value, str | torch.device)
        return self._device if is_device and str(value) == "mps" else value

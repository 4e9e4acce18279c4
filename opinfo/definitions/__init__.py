"""The ops that the suite knows, one module or package each, and those of a patch set's own."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path

from torch.testing._internal.opinfo.core import OpInfo

from mpskit.errors import MpskitError
from opinfo.definition import Definition
from opinfo.definitions.log_softmax import LOG_SOFTMAX
from opinfo.definitions.log_softmax_backward import LOG_SOFTMAX_BACKWARD
from opinfo.settings import settings

DEFINITIONS: tuple[Definition, ...] = (LOG_SOFTMAX, LOG_SOFTMAX_BACKWARD)


def definitions_under_test() -> tuple[Definition, ...]:
    """Those of the patch set's own ops, or ours where it has none; of them, the chosen ones."""
    chosen = settings().ops
    every = definitions_in(settings().definitions_dir)
    return tuple(definition for definition in every if not chosen or definition.name in chosen)


def definitions_in(folder: Path | None) -> tuple[Definition, ...]:
    """What the modules of a patch set's folder define; ours for None.

    Raises:
        MpskitError: a module there has no ``DEFINITIONS``.
    """
    return DEFINITIONS if folder is None else _load_folder(folder)


def definition_of(op: OpInfo) -> Definition:
    """The definition that an OpInfo entry, PyTorch's or ours, belongs to."""
    return next(definition for definition in definitions_under_test() if definition.name == op.name)


@lru_cache
def _load_folder(folder: Path) -> tuple[Definition, ...]:
    modules = (path for path in sorted(folder.glob("[!_]*.py")) if path.name[:5] != "test_")
    return tuple(definition for path in modules for definition in _load(path))


def _load(path: Path) -> tuple[Definition, ...]:
    spec = importlib.util.spec_from_file_location(f"_patch_set_opinfo_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    definitions = getattr(module, "DEFINITIONS", None)
    if definitions is None:
        raise MpskitError(
            f"{path} has no DEFINITIONS.",
            hint="Name the module's opinfo.definition.Definition's in a tuple DEFINITIONS.",
        )
    return tuple(definitions)

"""The ops that the suite knows, one module or package each."""

from __future__ import annotations

from torch.testing._internal.opinfo.core import OpInfo

from opinfo.definition import Definition
from opinfo.definitions.log_softmax import LOG_SOFTMAX

DEFINITIONS: tuple[Definition, ...] = (LOG_SOFTMAX,)


def definition_of(op: OpInfo) -> Definition:
    """The definition that an OpInfo entry, PyTorch's or ours, belongs to."""
    return next(definition for definition in DEFINITIONS if definition.name == op.name)

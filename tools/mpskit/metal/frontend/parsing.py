"""From embedded text to a parsed program."""

from __future__ import annotations

from functools import lru_cache

from mpskit.metal.frontend.preprocess import preprocess
from mpskit.metal.frontend.structure import Program
from mpskit.metal.host_compiler import Compiler


@lru_cache(maxsize=1)
def parse(embedded: str, compiler: Compiler, *, metal_version: int) -> Program:
    """The program of an embedded text; the last one is kept for whoever needs it next.

    Raises:
        CompileError: the preprocessor refuses it, or its brackets do not match.
    """
    return Program(preprocess(embedded, compiler, metal_version=metal_version))

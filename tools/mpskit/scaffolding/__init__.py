"""A patch set to start from, for an op that has no Metal kernel yet.

    make_scaffold("log_ndtr", "aten::special_log_ndtr", Path("log_ndtr"))

writes kernels, plan, host code, series, tests and the op's definition for `mpskit test`, all of
them working: what is left is to make the kernels right for every input, and fast.
"""

from mpskit.scaffolding.formulas import Formula
from mpskit.scaffolding.kinds import KIND_NAMES
from mpskit.scaffolding.scaffold import Scaffold, make_scaffold

__all__ = ["KIND_NAMES", "Formula", "Scaffold", "make_scaffold"]

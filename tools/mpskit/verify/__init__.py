"""Ops routed to a patch's kernels, so that PyTorch's own tests run on them.

    from mpskit.verify import Implementation, OpUnderTest

    with OpUnderTest(implementations=[SQUARE], patch_dir=patch_set) as op:
        torch.square(x)
    op.require_launches("square")

An :class:`Implementation` says which op, which kernels, and how to launch them.
"""

from mpskit.verify.implementation import Implementation, Kernels
from mpskit.verify.op_under_test import OpUnderTest
from mpskit.verify.plan import METAL_DTYPES

__all__ = ["METAL_DTYPES", "Implementation", "Kernels", "OpUnderTest"]

"""A PyTorch checkout: find it, look at it, move it between commits, make a small one."""

from mpskit.checkout.checkout import Checkout, DirtyPath, Head, UnfinishedCommand
from mpskit.checkout.git import Git, GitError
from mpskit.checkout.skeleton import Skeleton, make_skeleton

__all__ = [
    "Checkout",
    "DirtyPath",
    "Git",
    "GitError",
    "Head",
    "Skeleton",
    "UnfinishedCommand",
    "make_skeleton",
]

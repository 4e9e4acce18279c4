"""Patch sets: read a series, plan it against a checkout, apply it, show it, take it off.

checkout = Checkout.open(path)
patch_set = load_patch_set()
plan(checkout, patch_set).state     # to do, done or impossible; writes nothing
apply(checkout, patch_set)          # commits on a branch of its own, entirely or not at all
update(checkout, patch_set)         # that branch, brought to the patch set as it is now
refresh(checkout, patch_set)        # the other way: edits in the checkout, into the patch set
revert(checkout)                    # as it was before
"""

from mpskit.patching.applying import Applied, apply, default_branch, rehearse
from mpskit.patching.diffing import Difference, FileDifference, difference
from mpskit.patching.edits import State
from mpskit.patching.loading import load_patch_set
from mpskit.patching.planning import EditPlan, PatchPlan, Plan, Unmet, plan
from mpskit.patching.record import AppliedPatch, Record, read_record, read_records
from mpskit.patching.refreshing import Left, Refreshed, refresh
from mpskit.patching.reporting import Status, status
from mpskit.patching.reverting import Reverted, revert
from mpskit.patching.series import (
    KernelUse,
    Layout,
    Patch,
    PatchFile,
    PatchSet,
    default_patch_set_directory,
)
from mpskit.patching.updating import Updated, resume, update

__all__ = [
    "Applied",
    "AppliedPatch",
    "Difference",
    "EditPlan",
    "FileDifference",
    "KernelUse",
    "Layout",
    "Left",
    "Patch",
    "PatchFile",
    "PatchPlan",
    "PatchSet",
    "Plan",
    "Record",
    "Refreshed",
    "Reverted",
    "State",
    "Status",
    "Unmet",
    "Updated",
    "apply",
    "default_branch",
    "default_patch_set_directory",
    "difference",
    "load_patch_set",
    "plan",
    "read_record",
    "read_records",
    "refresh",
    "rehearse",
    "resume",
    "revert",
    "status",
    "update",
]

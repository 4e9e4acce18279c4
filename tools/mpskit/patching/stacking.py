"""A patch set as a stack of commits, made as git objects: no ref and no file changes here."""

from __future__ import annotations

from collections.abc import Mapping

from mpskit.checkout.checkout import Checkout, Head
from mpskit.errors import MpskitError
from mpskit.patching.planning import Plan, write_patched_tree
from mpskit.patching.record import AppliedPatch, Record
from mpskit.patching.replaying import authorship
from mpskit.patching.series import Patch, PatchSet


def refuse_without_identity(checkout: Checkout) -> None:
    """Raise where git has no name to put on a commit."""
    for role in ("AUTHOR", "COMMITTER"):
        if checkout.git.answer("var", f"GIT_{role}_IDENT") is None:
            raise MpskitError(
                "git does not know your name and address, which a commit needs.",
                hint='git config --global user.name "Your Name" && '
                "git config --global user.email you@example.com",
            )


def write_stack(
    checkout: Checkout,
    patch_set: PatchSet,
    planned: Plan,
    origin: Head,
    branch: str,
    earlier: Record | None = None,
) -> Record:
    """Store one commit a patch that has something to do, on top of each other.

    A commit of the stack ``earlier`` that would come out the same is taken as it is, and one that
    comes out differently keeps its author and date, as amending does.
    """
    old = {item.name: item.commit for item in earlier.patches} if earlier else {}
    parent = planned.base
    applied = []
    for item in planned.patches:
        if item.changes:
            tree = write_patched_tree(checkout, checkout.git, parent, item.changes)
            parent = _commit(checkout, item.patch, tree, parent, old)
            applied.append(AppliedPatch(item.patch.name, parent, item.patch.digest))
    return Record(branch, origin, patch_set.digest, tuple(applied))


def _commit(
    checkout: Checkout, patch: Patch, tree: str, parent: str, old: Mapping[str, str]
) -> str:
    earlier = old.get(patch.name)
    if earlier is None:
        return checkout.git.write_commit(tree, [parent], patch.message)
    if _is(checkout, earlier, tree, parent, patch.message):
        return earlier
    who = authorship(checkout, earlier)
    return checkout.git.write_commit(tree, [parent], patch.message, who)


def _is(checkout: Checkout, commit: str, tree: str, parent: str, message: str) -> bool:
    found = checkout.git.line("log", "-1", "--format=%T %P%n%B", "--encoding=UTF-8", commit)
    return found.rstrip("\n") == f"{tree} {parent}\n{message}".rstrip("\n")

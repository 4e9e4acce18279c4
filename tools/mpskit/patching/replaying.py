"""Put the user's commits on top of another parent, as git objects alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from mpskit.checkout.checkout import Checkout
from mpskit.checkout.git import Entry
from mpskit.errors import MpskitError


@dataclass(frozen=True)
class Replayed:
    """``tip`` is the last commit; None where the commit ``conflict`` conflicts at ``paths``."""

    tip: str | None
    conflict: str = ""
    paths: tuple[str, ...] = ()


def own_commits(checkout: Checkout, tip: str, branch: str) -> list[str]:
    """The user's commits on ``branch`` behind ``tip``, the last of ours; oldest first.

    Raises:
        MpskitError: they cannot be moved: one is a merge, or our commits are no longer below them.
    """
    git = checkout.git
    name = branch.removeprefix("refs/heads/")
    if not checkout.is_ancestor(tip, branch):
        raise MpskitError(
            f"Branch {name} no longer holds the commits that mpskit made: they were amended or "
            "rebased.",
            hint=f"Keep it with `git branch NEW-NAME {name}`; then `git reset --keep "
            f"{tip[:12]}` on {name} goes back to mpskit's commits.",
        )
    listing = git.line("rev-list", "--reverse", "--parents", branch, "--not", tip).splitlines()
    commits = [line.split() for line in listing]
    for commit, *parents in commits:
        if len(parents) > 1:
            raise MpskitError(
                f"Branch {name} has a merge on top of mpskit's commits, {commit[:12]}, and a merge "
                "cannot be moved.",
                hint=f"Make it plain commits first: git rebase {tip[:12]} {name}",
            )
    return [commit for commit, *_parents in commits]


def replay(
    checkout: Checkout, commits: Iterable[str], onto: str, decided: Collection[str] = ()
) -> Replayed:
    """Store ``commits`` again on top of ``onto``; one that has nothing left to change is dropped.

    At the paths ``decided`` the text of ``onto`` stands, whatever the commits make of it.
    """
    tip = onto
    for commit in commits:
        changes, conflicts = _merge(checkout, commit, tip, decided)
        if conflicts:
            subject = checkout.git.line("log", "-1", "--format=%s", commit)
            return Replayed(None, subject, tuple(conflicts))
        if changes:
            tip = _commit_again(checkout, commit, tip, changes)
    return Replayed(tip)


def _merge(
    checkout: Checkout, commit: str, tip: str, decided: Collection[str]
) -> tuple[dict[str, Entry | None], list[str]]:
    """What ``commit`` changes on top of ``tip`` (None deletes), and where it conflicts with it."""
    changed = checkout.changed_paths(f"{commit}^", commit)
    paths = [path for path in changed if path not in decided]
    base, ours, theirs = (checkout.git.entries(tree, paths) for tree in (f"{commit}^", tip, commit))
    changes: dict[str, Entry | None] = {}
    conflicts = []
    for path in paths:
        sides = (base.get(path), ours.get(path), theirs.get(path))
        if sides[1] == sides[2]:
            continue
        if sides[0] == sides[1]:
            changes[path] = sides[2]
            continue
        merged = _merge_entries(checkout, *sides)
        if merged is None:
            conflicts.append(path)
        elif merged != sides[1]:
            changes[path] = merged
    return changes, conflicts


def _merge_entries(
    checkout: Checkout, base: Entry | None, ours: Entry | None, theirs: Entry | None
) -> Entry | None:
    if base is None or ours is None or theirs is None:
        return None
    sides = (base, ours, theirs)
    if not all(side.is_file for side in sides):
        return None
    texts = checkout.git.contents(side.object_id for side in sides)
    merged = checkout.git.merge_contents(
        texts[ours.object_id], texts[base.object_id], texts[theirs.object_id]
    )
    if merged is None:
        return None
    mode = theirs.mode if ours.mode == base.mode else ours.mode
    return Entry(mode, checkout.git.write_blob(merged))


def _commit_again(
    checkout: Checkout, commit: str, parent: str, changes: Mapping[str, Entry | None]
) -> str:
    git = checkout.git
    tree = git.write_tree(parent, changes)
    message = git.run("log", "-1", "--format=%B", "--encoding=UTF-8", commit).decode(
        errors="replace"
    )
    return git.write_commit(
        tree, [parent], message.rstrip("\n") + "\n", authorship(checkout, commit)
    )


def authorship(checkout: Checkout, commit: str) -> dict[str, str]:
    """Who wrote ``commit``, and when, as the environment of a git that is to say so again."""
    fields = checkout.git.line(
        "log", "-1", "--format=%an%x00%ae%x00%ad", "--date=raw", "--encoding=UTF-8", commit
    )
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE")
    return dict(zip(names, fields.split("\0"), strict=True))

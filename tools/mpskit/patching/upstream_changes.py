"""What upstream has changed, since the patch set was applied, at the places that it edits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from mpskit.checkout.checkout import Checkout, Head
from mpskit.patching.edits import State
from mpskit.patching.planning import EditPlan, Plan, decode
from mpskit.patching.record import Record
from mpskit.patching.series import PatchFile

_HUNK = re.compile(r"^@@ -(?P<start>\d+)(?:,(?P<count>\d+))? ", re.MULTILINE)
_MOST_LINES = 80


@dataclass(frozen=True)
class _Since:
    """The base that the patch set was applied on, and the commit that upstream is at now."""

    old: str
    new: str


def with_upstream_changes(
    checkout: Checkout, planned: Plan, head: Head, records: Iterable[Record]
) -> Plan:
    """``planned`` with each edit marked at whose place upstream has another text by now.

    On an applied branch, "now" is the branch that it was made from; elsewhere it is HEAD, compared
    to the base of a branch that carries the patch set.
    """
    since = _since(checkout, head, list(records))
    if since is None:
        return planned
    paths = {edit.path for patch in planned.patches for edit in patch.edits}
    old, new = (checkout.read_all(commit, paths) for commit in (since.old, since.new))
    patches = tuple(
        replace(
            patch,
            edits=tuple(
                _compared(checkout, edit, since, old.get(edit.path), new.get(edit.path))
                for edit in patch.edits
            ),
        )
        for patch in planned.patches
    )
    return replace(planned, patches=patches)


def _since(checkout: Checkout, head: Head, records: list[Record]) -> _Since | None:
    here = [record for record in records if record.branch == head.branch]
    for record in here or records:
        origin = record.origin.branch
        now = checkout.git.resolve(origin) if here and origin else head.commit
        if now and now != record.base:
            return _Since(record.base, now)
    return None


def _compared(
    checkout: Checkout, edit: EditPlan, since: _Since, old: bytes | None, new: bytes | None
) -> EditPlan:
    if old == new or (isinstance(edit.source, PatchFile) and new == edit.source.content):
        return edit
    before, after = (_place(edit, content) for content in (old, new))
    if before is not None and after is not None and before.split() == after.split():
        return edit
    if before is None and after is None:
        return edit
    difference = _difference(checkout, edit.path, since, decode(old or b""), before)
    state = edit.state if edit.state is State.IMPOSSIBLE else State.CHANGED
    return replace(edit, state=state, difference=difference)


def _place(edit: EditPlan, content: bytes | None) -> str | None:
    """The text that ``edit`` is about, None where it is not there."""
    if content is None:
        return None
    text = decode(content)
    return text if isinstance(edit.source, PatchFile) else edit.source.region(text)


def _difference(
    checkout: Checkout, path: str, since: _Since, old_text: str, place: str | None
) -> str:
    """git's diff of ``path``, as far as it touches the lines of ``place`` (None: all of it)."""
    output = checkout.git.run(
        *("diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--color=never"),
        *(since.old, since.new, "--", path),
    )
    head, *hunks = re.split(r"^(?=@@ )", output.decode(errors="replace"), flags=re.M)
    if place is not None:
        first = old_text.count("\n", 0, old_text.index(place)) + 1
        last = first + place.rstrip("\n").count("\n")
        hunks = [hunk for hunk in hunks if _touches(hunk, first, last)]
    lines = (head + "".join(hunks)).splitlines()
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"... {len(lines) - _MOST_LINES} lines more"]
    return "\n".join(lines)


def _touches(hunk: str, first: int, last: int) -> bool:
    match = _HUNK.match(hunk)
    if match is None:
        return False
    start, count = int(match["start"]), int(match["count"] or 1)
    return start <= last and first <= start + max(count, 1) - 1

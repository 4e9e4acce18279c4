"""Checks of the commits: where they stand, what they say, how large they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpskit.patching import State, plan
from mpskit.patching.planning import write_patched_tree
from mpskit.pullrequest.applied import AppliedSeries, PatchCommit
from mpskit.pullrequest.checks.check import Check, failed, judged, passed

# PyTorch has no written rule; git's own manual wants about 50 and tools cut at 72.
_SUBJECT_LENGTH = 72
_BODY_LENGTH = 80
# What PyTorch's merge bot and ghstack write themselves, and other projects' customs, are stray.
_TRAILER = re.compile(r"^(?P<key>[A-Za-z][A-Za-z-]*): \S")
_PROSE_TRAILER = re.compile(r"^(Pull Request resolved|Approved by|Differential Revision):", re.M)
_KNOWN_TRAILERS = ("co-authored-by",)
_CLOSING = re.compile(r"^\s*(fix(es|ed)?|close[sd]?|resolve[sd]?)\b:? *(?P<what>\S*#\d+.*)$", re.I)
_FIXES = re.compile(r"^Fixes #\d+$")
# Above this many changed lines PyTorch's PR sanity check fails.
_MOST_LINES = 2000


def applies(series: AppliedSeries, base: str) -> Check:
    """The series fits ``base``; on its own base, applying it again gives the branch's tree."""
    name = "applies to the base"
    checkout = series.checkout
    commit = checkout.git.line("rev-parse", "--verify", f"{base}^{{commit}}")
    planned = plan(checkout, series.patch_set, commit=commit)
    if planned.state is State.DONE:
        return failed(name, f"{commit[:12]} has the patch set already")
    if planned.state is State.IMPOSSIBLE:
        reasons = [item.reason for patch in planned.patches for item in patch.unmet] + [
            edit.reason
            for patch in planned.patches
            for edit in patch.edits
            if edit.state is State.IMPOSSIBLE
        ]
        return failed(name, f"on {commit[:12]}: {reasons[0]}")
    changes = {path: text for item in planned.patches for path, text in item.changes.items()}
    with checkout.git.scratch() as scratch:
        tree = write_patched_tree(checkout, scratch, commit, changes)
    branch_tree = checkout.git.line("rev-parse", f"{series.record.branch}^{{tree}}")
    if commit == series.record.base and tree != branch_tree:
        return failed(name, "applying it again does not give the tree that the branch has")
    return passed(name, f"{len(changes)} files change on {commit[:12]}")


def alone(series: AppliedSeries) -> Check:
    """The branch holds the series' commits and nothing else, and the work tree has no changes."""
    git, record = series.checkout.git, series.record
    listing = git.line("rev-list", "--reverse", f"{record.base}..{record.branch}").splitlines()
    ours = [item.commit for item in series.commits]
    problems = [f"commit {commit[:12]} is not ours" for commit in listing if commit not in ours]
    problems += [f"commit {commit[:12]} is gone" for commit in ours if commit not in listing]
    paths = [path for item in series.commits for path in item.paths]
    problems += [f"{item.path} is {item.what}" for item in series.checkout.dirty(paths)]
    count = "1 commit" if len(ours) == 1 else f"{len(ours)} commits"
    found = f"{record.branch_name}: {count} on the base"
    return judged("alone on its branch", problems, found)


def message(item: PatchCommit) -> Check:
    """The commit's message is as PyTorch's are."""
    problems = list(_message_problems(item.message))
    lines = item.message.splitlines()
    found = f"subject of {len(lines[0])} characters, longest line {max(map(len, lines))}"
    return judged("commit message", problems, found, item.patch.name)


def _message_problems(text: str) -> Iterator[str]:
    subject, *rest = text.rstrip("\n").split("\n")
    if not subject.startswith("[MPS] "):
        yield "the subject does not begin with [MPS]"
    if len(subject) > _SUBJECT_LENGTH:
        yield f"the subject has {len(subject)} characters, more than {_SUBJECT_LENGTH}"
    if subject.endswith("."):
        yield "the subject ends with a full stop"
    if not any(line.strip() for line in rest):
        yield "there is no text under the subject"
    elif rest[0]:
        yield "no empty line follows the subject"
    for number, line in enumerate(rest, 2):
        if len(line) > _BODY_LENGTH and " " in line.strip():
            yield f"line {number} has {len(line)} characters, more than {_BODY_LENGTH}"
        if _CLOSING.match(line) and not _FIXES.match(line):
            yield f"line {number} should read `Fixes #NUMBER`, and nothing else"
    yield from _stray_trailers(text)


def _stray_trailers(text: str) -> Iterator[str]:
    for match in _PROSE_TRAILER.finditer(text):
        yield f"stray trailer {match[1]}, which PyTorch's bot writes"
    last = text.rstrip("\n").split("\n\n")[-1].split("\n")
    trailers = [_TRAILER.match(line) for line in last]
    if len(text.rstrip("\n").split("\n\n")) < 2 or not all(trailers):
        return
    for trailer in trailers:
        if trailer and trailer["key"].lower() not in _KNOWN_TRAILERS:
            yield f"stray trailer {trailer['key']}"


def size(item: PatchCommit) -> Check:
    """PyTorch's CI takes a pull request of that many lines."""
    fields = item.checkout.git.fields(
        "diff", "--no-ext-diff", "--no-renames", "--numstat", "-z", item.parent, item.commit
    )
    counts = [field.split("\t", 2)[:2] for field in fields]
    lines = sum(int(count) for pair in counts for count in pair if count != "-")
    found = f"{lines} changed lines in {len(fields)} files"
    problems = [f"{found}; PyTorch's CI refuses more than {_MOST_LINES}"]
    return judged("diff size", problems if lines > _MOST_LINES else [], found, item.patch.name)

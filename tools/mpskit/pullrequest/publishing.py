"""The ways out: commands to paste, and a push of the one branch where it is asked for."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from mpskit.checkout.git import GitError
from mpskit.errors import MpskitError
from mpskit.pullrequest.applied import AppliedSeries
from mpskit.pullrequest.rendering import PullRequest

_UPSTREAM = "pytorch/pytorch"


def commands(
    series: AppliedSeries,
    requests: Sequence[PullRequest],
    texts: Sequence[Path],
    labels: Iterable[str],
) -> list[tuple[str, list[str]]]:
    """Headings, each with the lines to paste below it.

    A stack goes out with ghstack, one pull request a commit; a single patch also with gh.
    """
    root, branch = shlex.quote(str(series.checkout.root)), series.record.branch_name
    patches = shlex.quote(str(texts[0].parent.parent)) + "/*.patch"
    ways = [
        ("Elsewhere, on the same base", [f"git am --keep-non-patch {patches}"]),
        (
            "With ghstack (needs write access to pytorch/pytorch)",
            [f"cd {root} && git switch {shlex.quote(branch)} && ghstack"],
        ),
    ]
    if len(requests) == 1:
        ways.append(("With gh", _with_gh(root, branch, requests[0], texts[0])))
    joined = " ".join(f'"{label}"' for label in labels)
    comment = shlex.quote(f"@pytorchbot label {joined}")
    ways.append(
        ("Labels, as a comment on each", [f"gh pr comment NUMBER -R {_UPSTREAM} -b {comment}"])
    )
    return ways


def _with_gh(root: str, branch: str, request: PullRequest, text: Path) -> list[str]:
    return [
        f"cd {root} && git push REMOTE {shlex.quote(branch)}",
        f"tail -n +3 {shlex.quote(str(text))} | gh pr create -R {_UPSTREAM} -B main "
        f"-H YOUR_NAME:{branch} -t {shlex.quote(request.title)} -F -",
    ]


def push(series: AppliedSeries, remote: str) -> str:
    """Pushes the series' branch, and nothing else, to the same name on ``remote``; never forces.

    Returns:
        what was pushed, for people.

    Raises:
        MpskitError: there is no such remote, or it refuses.
    """
    git, branch = series.checkout.git, series.record.branch
    remotes = git.line("remote").splitlines()
    if remote not in remotes:
        raise MpskitError(
            f"{series.checkout.root} has no remote {remote!r}.",
            hint=f"It has {', '.join(remotes) or 'none'}; add yours: git remote add NAME URL",
        )
    try:
        git.run(
            *("push", "--quiet", "--no-follow-tags", "--recurse-submodules=no", "--no-signed"),
            *(remote, f"{branch}:{branch}"),
        )
    except GitError as error:
        raise MpskitError(
            f"{remote} did not take {series.record.branch_name}: {error.message}",
            hint="mpskit never forces. Where the branch is there in another version, push it "
            f"yourself: git push --force-with-lease {remote} {series.record.branch_name}",
        ) from None
    return f"{series.record.branch_name} to {remote}"

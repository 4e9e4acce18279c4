"""Write what a pull request is made of: patch files, messages and texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from mpskit.checkout.git import disk_errors_explained
from mpskit.errors import MpskitError
from mpskit.pullrequest.applied import AppliedSeries
from mpskit.pullrequest.rendering import UPSTREAM_FILE, PullRequest, upstream_json

TEXT_FILE = "PR.md"
MESSAGE_FILE = "message.txt"


def write(series: AppliedSeries, requests: Iterable[PullRequest], out: Path) -> list[Path]:
    """Writes ``git format-patch`` files into ``out``, and a folder a patch with its texts.

    What an earlier run has left there under the same names is replaced.

    Raises:
        MpskitError: ``out`` lies in the checkout, or cannot be written.
    """
    out = out.expanduser().resolve()
    if out.is_relative_to(series.checkout.root.resolve()):
        raise MpskitError(
            f"{out} lies inside the checkout.", hint="Name a folder outside it with --out DIR."
        )
    with disk_errors_explained(out.parent):
        out.mkdir(parents=True, exist_ok=True)
        written = _format_patches(series, out)
        for request in requests:
            written += _write_texts(request, out / request.patch)
    return written


def _format_patches(series: AppliedSeries, out: Path) -> list[Path]:
    for stale in out.glob("[0-9][0-9][0-9][0-9]-*.patch"):
        stale.unlink()
    listing = series.checkout.git.line(
        *("format-patch", "--no-signature", "--keep-subject"),
        *("--no-stat", "--no-renames", "--full-index", "--binary", "--no-color"),
        *("--no-ext-diff", "--no-textconv", "--no-attach", "--no-thread", "--no-cover-letter"),
        *("--no-numbered", "--suffix=.patch", f"--output-directory={out}"),
        f"{series.record.base}..{series.record.tip}",
    )
    return [Path(line) for line in listing.splitlines()]


def _write_texts(request: PullRequest, folder: Path) -> list[Path]:
    folder.mkdir(exist_ok=True)
    contents = {TEXT_FILE: request.text, MESSAGE_FILE: request.message}
    if request.upstream is not None:
        contents[UPSTREAM_FILE] = upstream_json(request.upstream)
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
    return [folder / name for name in contents]


def text_files(requests: Sequence[PullRequest], out: Path) -> list[Path]:
    """Where ``write`` puts each request's text."""
    return [out / request.patch / TEXT_FILE for request in requests]

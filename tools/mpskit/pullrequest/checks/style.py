"""Checks of the style: clang-format, and PyTorch's own lintrunner where it is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mpskit.pullrequest.applied import AppliedSeries, PatchCommit
from mpskit.pullrequest.checks.check import Check, failed, judged, not_run, passed

_STYLE_FILE = ".clang-format"
# What PyTorch's .clang-format asks for, for bases that lack it.
_FALLBACK_STYLE = Path(__file__).with_name("pytorch.clang-format")
_SUFFIXES = (".metal", ".mm", ".m", ".h", ".cpp", ".cc")
_HUNK = re.compile(r"^@@ -\S+ \+(?P<start>\d+)(?:,(?P<count>\d+))? @@", re.MULTILINE)
_LINTRUNNER_FILE = ".lintrunner.toml"


def clang_format(item: PatchCommit, program: str | None = None) -> Check:
    """clang-format would leave the files that the patch adds, and the lines that it edits."""
    name, patch = "clang-format", item.patch.name
    program = program or _find("clang-format")
    if program is None:
        return not_run(name, "not installed: pip install clang-format", patch)
    theirs = item.checkout.read(item.commit, _STYLE_FILE)
    style = theirs if theirs is not None else _FALLBACK_STYLE.read_bytes()
    origin = "the checkout's style" if theirs is not None else "PyTorch's style as mpskit has it"
    problems: list[str] = []
    count = 0
    with tempfile.TemporaryDirectory(prefix="mpskit-style-") as directory:
        style_file = Path(directory, "style")
        style_file.write_bytes(style)
        for path, text in item.texts().items():
            ranges = list(_changed_lines(item, path))
            if path.endswith(_SUFFIXES) and ranges:
                count += 1
                problems += _unformatted(program, style_file, path, text, ranges)
    return judged(name, problems, f"{count} files, {_version(program)}, {origin}", patch)


def in_pytorch_style(path: str, text: str) -> str:
    """The text of a C++, Objective-C++ or Metal file as clang-format puts it in PyTorch's style.

    Any other file, and every file where clang-format is not installed, stays as it is.
    """
    program = _find("clang-format")
    if program is None or not path.endswith(_SUFFIXES):
        return text
    finished = _format(program, _FALLBACK_STYLE, path, text)
    return text if finished.returncode else finished.stdout


def _find(program: str) -> str | None:
    """The program beside this Python, where its wheel puts it, or on the PATH."""
    beside = Path(sys.executable).with_name(program)
    return str(beside) if beside.is_file() else shutil.which(program)


def _version(program: str) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    return said.strip()


def _changed_lines(item: PatchCommit, path: str) -> Iterator[str]:
    """Ranges of the lines that the commit adds, as ``--lines`` takes them."""
    diff = item.checkout.git.run(
        *("diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--color=never", "-U0"),
        *(item.parent, item.commit, "--", path),
    )
    for hunk in _HUNK.finditer(diff.decode(errors="replace")):
        start, count = int(hunk["start"]), int(hunk["count"] or 1)
        if count:
            yield f"{start}:{start + count - 1}"


def _unformatted(
    program: str, style_file: Path, path: str, text: str, ranges: list[str]
) -> Iterator[str]:
    formatted = _format(program, style_file, path, text, *(f"--lines={lines}" for lines in ranges))
    if formatted.returncode:
        yield f"{path}: clang-format ended with {formatted.returncode}: {formatted.stderr.strip()}"
        return
    before, after = text.split("\n"), formatted.stdout.split("\n")
    wrong = [i for i, pair in enumerate(zip(before, after, strict=False), 1) if pair[0] != pair[1]]
    if wrong:
        yield f"{path}: line {wrong[0]} is formatted otherwise"
    elif len(before) != len(after):
        yield f"{path}: the last lines are formatted otherwise"


def _format(
    program: str, style_file: Path, path: str, text: str, *options: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, f"--style=file:{style_file}", f"--assume-filename={path}", *options],
        input=text,
        capture_output=True,
        text=True,
    )


def lintrunner(series: AppliedSeries) -> Check:
    """PyTorch's own linters, on the files of the series."""
    name, root = "lintrunner", series.checkout.root
    program = _find("lintrunner")
    if program is None:
        return not_run(name, "not installed: pip install lintrunner")
    if not (root / _LINTRUNNER_FILE).is_file():
        return not_run(name, f"the checkout has no {_LINTRUNNER_FILE}")
    paths = dict.fromkeys(path for item in series.commits for path in item.texts())
    run = subprocess.run(
        [program, "--output=oneline", *paths], cwd=root, capture_output=True, text=True
    )
    if run.returncode:
        said = (run.stdout + run.stderr).strip().splitlines()
        return failed(name, "; ".join(said[:20]) or f"exit code {run.returncode}")
    return passed(name, f"{len(paths)} files")

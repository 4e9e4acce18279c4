"""A small PyTorch checkout made from the installed torch wheel.

The wheel carries torchgen, native_functions.yaml, the headers and the test helpers. Here each goes
where the source tree has it; what the wheel lacks and patches need, Activation.mm and test_mps.py,
are stand-ins.
Enough to apply patches to, to generate code from and to compile host code against.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mpskit.checkout.git import Git, disk_errors_explained, refuse_redirections
from mpskit.errors import MpskitError
from mpskit.new_directory import new_directory

Progress = Callable[[int, int], None]
"""Called with the number of files written and the number there will be."""

_STAND_INS = Path(__file__).parent / "stand_ins"
_BRANCH = "main"
_IDENTITY = ("mpskit", "mpskit@localhost")
# One author and date, so that the same wheel always gives the same commit.
_SIGNATURE = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (
        ("NAME", _IDENTITY[0]),
        ("EMAIL", _IDENTITY[1]),
        ("DATE", "2000-01-01T00:00:00+0000"),
    )
}


@dataclass(frozen=True)
class Source:
    """Files of an installed package (glob ``pattern`` under ``directory``) and their new home."""

    package: str
    directory: str
    pattern: str
    destination: str


_SOURCES = (
    Source("torchgen", ".", "**/*.py", "torchgen"),
    Source("torchgen", "packaged/ATen/native", "*.yaml", "aten/src/ATen/native"),
    Source("torchgen", "packaged/ATen/templates", "*", "aten/src/ATen/templates"),
    Source("torchgen", "packaged/autograd", "**/*", "tools/autograd"),
    Source("torch", "include/ATen/mps", "*.h", "aten/src/ATen/mps"),
    Source("torch", "include/ATen/native/mps", "**/*.h", "aten/src/ATen/native/mps"),
    Source("torch", "include/c10/metal", "*.h", "c10/metal"),
    Source("torch", "testing", "**/*.py", "torch/testing"),
)
# Copies of what the lines above take from there.
_LEFT_OUT = ("torchgen/packaged/",)

# What setup.py puts around each header that it installs, and the source tree does not have.
_WRAPPER_HEAD = "#if !defined(TORCH_STABLE_ONLY) && !defined(TORCH_TARGET_VERSION)\n"
_WRAPPER_TAIL = "\n#else\n#error "


@dataclass(frozen=True)
class Skeleton:
    """What ``make_skeleton`` made: ``commit`` is the same for the same torch wheel."""

    directory: Path
    torch_version: str
    commit: str
    files: int


def make_skeleton(directory: Path | str, progress: Progress | None = None) -> Skeleton:
    """Make ``directory``, a git repository with one commit of what the torch wheel carries.

    Nothing is left behind when it fails or is interrupted.

    Raises:
        MpskitError: ``directory`` is there and not empty, torch is not installed, or git fails.
    """
    refuse_redirections()
    target = Path(directory).expanduser().resolve()
    with disk_errors_explained(target.parent), new_directory(target) as draft:
        version = _torch_version()
        files = list(_files(version))
        for done, (path, content) in enumerate(files):
            if progress:
                progress(done, len(files))
            place = draft / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            place.chmod(0o644)
        if progress:
            progress(len(files), len(files))
        commit = _commit_all(draft, version)
    return Skeleton(target, version, commit, len(files))


def _package_directory(package: str) -> Path:
    """Where ``package`` is installed; found without importing it, which takes torch seconds."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MpskitError(f"{package} is not installed for this Python.", hint="pip install torch")
    return Path(next(iter(spec.submodule_search_locations)))


def _torch_version() -> str:
    """The installed torch's version without its local part (2.13.0, not 2.13.0+cpu)."""
    _package_directory("torch")
    return importlib.metadata.version("torch").partition("+")[0]


def _files(version: str) -> Iterator[tuple[str, bytes]]:
    """Path in the source tree and content of each file of the skeleton."""
    for source in _SOURCES:
        directory = _package_directory(source.package) / source.directory
        for file in sorted(directory.glob(source.pattern)):
            path = file.relative_to(directory).as_posix()
            installed = f"{source.package}/{path}"
            if file.is_file() and file.suffix != ".pyc" and not installed.startswith(_LEFT_OUT):
                yield f"{source.destination}/{path}", _as_in_source_tree(file)
    for file in sorted(_STAND_INS.rglob("*")):
        if file.is_file():
            yield file.relative_to(_STAND_INS).as_posix(), file.read_bytes()
    yield "version.txt", f"{version}\n".encode()


def _as_in_source_tree(file: Path) -> bytes:
    content = file.read_bytes()
    return strip_wrapper(content) if file.suffix == ".h" else content


def strip_wrapper(header: bytes) -> bytes:
    """``header`` without the conditional that the wheel's build puts around it."""
    tail = header.rfind(_WRAPPER_TAIL.encode())
    if not header.startswith(_WRAPPER_HEAD.encode()) or tail < 0:
        return header
    return header[len(_WRAPPER_HEAD) : tail]


def stand_in(path: str) -> str:
    """The text that a skeleton has at a path that the torch wheel lacks."""
    return (_STAND_INS / path).read_text(encoding="utf-8")


def _commit_all(directory: Path, version: str) -> str:
    """Make ``directory`` a repository with everything in it committed on ``main``."""
    git = Git(directory)
    git.run("init", "--quiet", "--template=", f"--initial-branch={_BRANCH}")
    # The commit must not depend on the user's own settings: no line-end or ignore rules.
    settings = ("core.autocrlf=false", f"core.attributesFile={os.devnull}")
    git.run(*(part for setting in settings for part in ("-c", setting)), "add", "--all", "--force")
    tree = git.line("write-tree")
    message = (
        f"PyTorch {version}, as far as its wheel carries it\n\n"
        "Made by `mpskit skeleton`: generated from the installed torch, with stand-ins for\n"
        "aten/src/ATen/native/mps/operations/Activation.mm and test/test_mps.py. Not a full\n"
        "source tree.\n"
    )
    commit = git.write_commit(tree, (), message, _SIGNATURE)
    git.run("update-ref", "-m", "mpskit skeleton", f"refs/heads/{_BRANCH}", commit)
    if git.answer("var", "GIT_COMMITTER_IDENT") is None:
        # Patches can then be tried out on a machine where git has never been set up.
        git.run("config", "user.name", _IDENTITY[0])
        git.run("config", "user.email", _IDENTITY[1])
    return commit

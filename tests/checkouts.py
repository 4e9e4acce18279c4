"""Small PyTorch checkouts and patch sets for tests, and a look at every byte of them."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import expecttest

import mpskit.cli

OPERATIONS = "aten/src/ATen/native/mps/operations"
ACTIVATION = f"{OPERATIONS}/Activation.mm"
NATIVE_FUNCTIONS = "aten/src/ATen/native/native_functions.yaml"

TREE = {
    "version.txt": "2.13.0\n",
    "README.md": "PyTorch, the part that tests need\n",
    "torch/__init__.py": "",
    "c10/metal/utils.h": "#pragma once\n",
    NATIVE_FUNCTIONS: """\
        - func: _square.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
          structured: True
          dispatch:
            CPU, CUDA: square_out
            MPS: square_mps_out

        - func: _cube.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
          structured: True
        """,
    ACTIVATION: """\
        #include <ATen/ops/_square_native.h>
        #include <ATen/ops/cube_native.h>

        namespace at::native {

        Tensor neighbour_before(const Tensor& self) {
          return self;
        }

        // The square of each element.
        TORCH_IMPL_FUNC(square_mps_out)(const Tensor& self, const Tensor& out) {
          const char* text = "}";
          if (self.numel() == 0) {
            return;
          }
        }

        Tensor neighbour_after(const Tensor& self) {
          return self;
        }

        } // namespace at::native
        """,
}

SERIES = """\
    format = 1
    name = "square"

    [[patch]]
    name = "square"
    title = "[MPS] Move square to Metal"
    why = "It is faster there."
    files = [
      "aten/src/ATen/native/mps/kernels/Square.metal",
      "aten/src/ATen/native/mps/operations/Square.mm",
    ]

    [[patch.requires]]
    path = "c10/metal/utils.h"
    since = "2.7"
    absent = "the kernels include it"

    [[patch.expects]]
    function = "_square.out"
    dispatch = { MPS = "square_mps_out" }

    [[patch.edit]]
    kind = "remove_definition"
    path = "aten/src/ATen/native/mps/operations/Activation.mm"
    head = "TORCH_IMPL_FUNC(square_mps_out)"
    replaced_by = "aten/src/ATen/native/mps/operations/Square.mm"
    """

PATCH_SET = {
    "series.toml": SERIES,
    "aten/src/ATen/native/mps/kernels/Square.metal": "kernel void square() {}\n",
    f"{OPERATIONS}/Square.mm": (
        "TORCH_IMPL_FUNC(square_mps_out)(const Tensor& self, const Tensor& out) {\n}\n"
    ),
}


def write_files(directory: Path, files: Mapping[str, str | bytes]) -> None:
    """Write ``files``; the text of each is dedented."""
    for path, content in files.items():
        place = directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = textwrap.dedent(content).encode()
        place.write_bytes(content)


def run_git(directory: Path, *arguments: str) -> str:
    """Standard output of git, run without rewriting the index on the side."""
    result = subprocess.run(
        ["git", *arguments],
        cwd=directory,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout


@dataclass(frozen=True)
class Snapshot:
    """Everything about a checkout that belongs to its user."""

    head: str
    refs: dict[str, str]
    index: str
    index_bytes: bytes
    work_tree: dict[str, tuple[int, bytes]]
    git_directory: frozenset[str]

    @classmethod
    def take(cls, root: Path) -> Snapshot:
        git_directory = root / ".git"
        return cls(
            head=(git_directory / "HEAD").read_text(),
            refs={
                str(path.relative_to(git_directory)): path.read_text()
                for path in (*git_directory.glob("refs/**/*"), git_directory / "packed-refs")
                if path.is_file()
            },
            index=run_git(root, "ls-files", "--stage", "-v"),
            index_bytes=(git_directory / "index").read_bytes(),
            work_tree={
                str(path.relative_to(root)): _content(path)
                for path in sorted(root.rglob("*"))
                if not path.is_dir() and git_directory not in path.parents
            },
            git_directory=frozenset(path.name for path in git_directory.iterdir()),
        )

    def without_stat_cache(self) -> Snapshot:
        """Without the index's file times, which a file put back cannot have as before."""
        return Snapshot(self.head, self.refs, self.index, b"", self.work_tree, self.git_directory)


def _content(path: Path) -> tuple[int, bytes]:
    if path.is_symlink():
        return (0, os.fsencode(path.readlink()))
    return (path.stat().st_mode, path.read_bytes())


@dataclass(frozen=True)
class Outcome:
    """What a run of the mpskit command came to."""

    exit_code: int
    output: str

    def __str__(self) -> str:
        return f"{self.output}exit code {self.exit_code}\n"


class CheckoutTestCase(expecttest.TestCase):
    """A test with a checkout and a patch set of its own, and git's settings out of the way."""

    identity = "[user]\nname = Tester\nemail = tester@example.com\n"

    def setUp(self) -> None:
        super().setUp()
        self.directory = Path(self.enterContext_(tempfile.TemporaryDirectory())).resolve()
        settings = self.directory / "gitconfig"
        settings.write_text(self.identity + "[init]\ndefaultBranch = main\n[gc]\nauto = 0\n")
        self.enterContext_(
            mock.patch.dict(
                os.environ,
                {"GIT_CONFIG_GLOBAL": str(settings), "GIT_CONFIG_NOSYSTEM": "1"},
            )
        )
        self.root = self.directory / "pytorch"
        self.patch_set = self.directory / "patches"
        make_checkout(self.root, TREE)
        write_files(self.patch_set, PATCH_SET)

    def enterContext_(self, context: contextlib.AbstractContextManager):
        """``enterContext``, which unittest has from Python 3.11 on."""
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def git(self, *arguments: str) -> str:
        return run_git(self.root, *arguments)

    def commit(self, files: Mapping[str, str | bytes], message: str = "A change") -> None:
        write_files(self.root, files)
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "-m", message)

    def mpskit(self, *arguments: str | Path) -> Outcome:
        """Run the mpskit command; in its output ids and this test's directory are made neutral."""
        streams = io.StringIO()
        with (
            mock.patch.object(sys, "argv", ["mpskit", *map(str, arguments)]),
            contextlib.redirect_stdout(streams),
            contextlib.redirect_stderr(streams),
        ):
            try:
                mpskit.cli.main()
            except SystemExit as exit_:
                code = exit_.code
        return Outcome(int(code or 0), self.neutral(streams.getvalue()))

    def apply(self, *options: str) -> Outcome:
        return self.mpskit("apply", self.root, "--patch-set", self.patch_set, *options)

    def neutral(self, text: str) -> str:
        text = text.replace(str(self.directory), "DIR")
        return re.sub(r"\b[0-9a-f]{7,40}\b", "ID", text)

    def assert_refused(self, outcome: Outcome, before: Snapshot) -> None:
        """The run failed, said what to do next, and no byte of the checkout is different."""
        self.assertNotEqual(outcome.exit_code, 0, outcome.output)
        self.assertIn("  next: ", outcome.output)
        self.assertEqual(Snapshot.take(self.root), before)


_templates: dict[int, Path] = {}
_templates_directory = Path(tempfile.mkdtemp(prefix="mpskit-test-"))
atexit.register(shutil.rmtree, _templates_directory, ignore_errors=True)


def make_checkout(root: Path, files: Mapping[str, str | bytes]) -> None:
    """A git repository with ``files`` committed on main; made once, then copied."""
    key = hash(tuple(files.items()))
    if key not in _templates:
        template = _templates_directory / f"template{len(_templates)}"
        write_files(template, files)
        run_git(template, "init", "--quiet", "--template=", "--initial-branch=main")
        run_git(template, "add", "--all")
        run_git(
            template, "-c", "user.name=Tester", "-c", "user.email=t@example.com",
            "commit", "--quiet", "-m", "Base",
        )  # fmt: skip
        _templates[key] = template
    shutil.copytree(_templates[key], root, symlinks=True)
    # A copy has new inodes; the index learns them, so that later runs of git have no reason to.
    run_git(root, "update-index", "-q", "--really-refresh")

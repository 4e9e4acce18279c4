from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

from checkouts import CheckoutTestCase, run_git

from mpskit.checkout import Checkout, Git, make_skeleton
from mpskit.checkout.skeleton import strip_wrapper
from mpskit.patching import State, apply, load_patch_set, plan


class SkeletonFilesTest(CheckoutTestCase):
    """What is in a skeleton; they share one, and leave it as it is."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.target = Path(temporary.name).resolve() / "skeleton"
        cls.skeleton = make_skeleton(cls.target)

    def test_files_stand_where_the_source_tree_has_them(self) -> None:
        self.assertEqual(run_git(self.target, "status", "--porcelain"), "")
        for path in (
            "torchgen/gen.py",
            "tools/autograd/derivatives.yaml",
            "aten/src/ATen/native/native_functions.yaml",
            "aten/src/ATen/native/tags.yaml",
            "aten/src/ATen/templates/RegisterDispatchKey.cpp",
            "aten/src/ATen/mps/MPSStream.h",
            "aten/src/ATen/native/mps/OperationUtils.h",
            "aten/src/ATen/native/mps/operations/BinaryKernel.h",
            "aten/src/ATen/native/mps/operations/Activation.mm",
            "c10/metal/reduction_utils.h",
            "torch/testing/_internal/common_mps.py",
            "version.txt",
        ):
            self.assertTrue((self.target / path).is_file(), path)
        self.assertEqual(Checkout.open(self.target).version(), self.skeleton.torch_version)
        tracked = run_git(self.target, "ls-files").splitlines()
        self.assertEqual(len(tracked), self.skeleton.files)
        self.assertEqual([path for path in tracked if path.endswith(".pyc")], [])

    def test_headers_lose_what_the_wheels_build_put_around_them(self) -> None:
        for header in self.target.rglob("*.h"):
            self.assertNotIn("TORCH_STABLE_ONLY", header.read_text(), header)
        header = self.target / "c10/metal/common.h"
        self.assertEqual(header.read_text().splitlines()[0], "#pragma once")
        self.assertTrue(header.read_text().endswith("} // namespace c10\n"))
        self.assertEqual(strip_wrapper(b"#pragma once\n"), b"#pragma once\n")

    def test_the_same_torch_gives_the_same_commit(self) -> None:
        settings = {"GIT_AUTHOR_NAME": "Someone else", "TZ": "Asia/Tokyo"}
        with mock.patch.dict(os.environ, settings):
            old = os.umask(0o077)
            try:
                second = make_skeleton(self.directory / "again")
            finally:
                os.umask(old)
        self.assertEqual(second.commit, self.skeleton.commit)

    def test_the_stand_in_dispatches_what_native_functions_names(self) -> None:
        text = (self.target / "aten/src/ATen/native/mps/operations/Activation.mm").read_text()
        functions = (self.target / "aten/src/ATen/native/native_functions.yaml").read_text()
        names = re.findall(r"^TORCH_IMPL_FUNC\((\w+)\)", text, re.M) + ["relu_mps"]
        self.assertEqual(len(names), 4)
        for name in names:
            self.assertRegex(functions, rf"MPS: {name}\n")


class SkeletonTest(CheckoutTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.target = self.directory / "skeleton"

    def test_our_own_patch_set_applies_to_it(self) -> None:
        make_skeleton(self.target)
        checkout, patch_set = Checkout.open(self.target), load_patch_set()
        self.assertIs(plan(checkout, patch_set).state, State.TODO)
        apply(checkout, patch_set)
        self.assertIs(plan(checkout, patch_set).state, State.DONE)

    def test_a_directory_in_use_is_refused(self) -> None:
        self.assertExpectedInline(
            str(self.mpskit("skeleton", self.root)),
            """\
error: DIR/pytorch is not empty.
  next: Name a directory that is empty or not there yet.
exit code 1
""",
        )
        self.assertExpectedInline(
            str(self.mpskit("skeleton", self.root / "README.md")),
            """\
error: DIR/pytorch/README.md is a file.
  next: Name a directory that is not there yet.
exit code 1
""",
        )
        missing = self.directory / "a" / "b"
        self.assertExpectedInline(
            str(self.mpskit("skeleton", missing)),
            """\
error: DIR/a does not exist.
  next: Make it first: mkdir -p DIR/a
exit code 1
""",
        )

    def test_an_empty_directory_is_taken(self) -> None:
        self.target.mkdir()
        data = json.loads(self.mpskit("skeleton", self.target, "--json").output)
        self.assertEqual(data["directory"], "DIR/skeleton")
        self.assertTrue((self.target / ".git").is_dir())

    def test_nothing_is_left_of_an_interrupted_run(self) -> None:
        before = set(self.directory.iterdir())
        run = Git.run
        for command in ("init", "add", "commit-tree", "update-ref"):

            def interrupted(
                git: Git, *arguments: str, stop: str = command, **options: object
            ) -> bytes:
                if stop in arguments:
                    raise KeyboardInterrupt
                return run(git, *arguments, **options)

            with mock.patch.object(Git, "run", interrupted):
                self.assertEqual(self.mpskit("skeleton", self.target).exit_code, 130)
            self.assertEqual(set(self.directory.iterdir()), before)

    def test_torch_is_not_imported(self) -> None:
        program = (
            "import sys; from mpskit.checkout import make_skeleton; "
            f"make_skeleton({str(self.target)!r}); sys.exit('torch' in sys.modules)"
        )
        subprocess.run([sys.executable, "-c", program], check=True)

    def test_torch_is_missing(self) -> None:
        find = importlib.util.find_spec

        def without_torch(name: str) -> object:
            return None if name.startswith("torch") else find(name)

        with mock.patch.object(importlib.util, "find_spec", without_torch):
            self.assertExpectedInline(
                str(self.mpskit("skeleton", self.target)),
                """\
error: torch is not installed for this Python.
  next: pip install torch
exit code 1
""",
            )
        self.assertFalse(self.target.exists())


class SkeletonWithoutIdentityTest(CheckoutTestCase):
    identity = ""

    def test_patches_can_be_tried_out_where_git_was_never_set_up(self) -> None:
        target = self.directory / "skeleton"
        make_skeleton(target)
        self.assertEqual(self.mpskit("apply", target).exit_code, 0)
        self.assertEqual(
            run_git(target, "log", "-1", "--format=%an <%ae>"), "mpskit <mpskit@localhost>\n"
        )


def test_the_target_is_resolved_against_the_current_directory(tmp_path: Path) -> None:
    program = "from mpskit.checkout import make_skeleton; print(make_skeleton('here').directory)"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert Path(result.stdout.strip()) == tmp_path / "here"

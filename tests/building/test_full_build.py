"""PyTorch's own build: its command line and options, with a stand-in for the build itself."""

from __future__ import annotations

import json
import os
import sys
from unittest import mock

from checkouts import CheckoutTestCase, write_files

SETUP = """\
    # USE_KINETO=0
    #   disables usage of libkineto library for profiling
    import json, os, pathlib, sys
    print("[1/2] Building a")
    print("[2/2] Building b")
    names = [name for name in os.environ if name.startswith(("USE_", "BUILD_"))]
    pathlib.Path(os.environ["RECORD"]).write_text(json.dumps(
        {"arguments": sys.argv[1:], "cwd": os.getcwd(),
         "options": {name: os.environ[name] for name in names}}
    ))
    if os.environ.get("BREAK"):
        sys.exit("operations/Square.mm:3:1: error: unknown type name 'Tensr'")
    """
CMAKE = """\
    option(BUILD_TEST "Build C++ test binaries" OFF)
    cmake_dependent_option(
      USE_DISTRIBUTED "Use distributed" ON "NOT WIN32" OFF)
    cmake_dependent_option(USE_MPS "Use MPS for macOS build" ON "MPS_FOUND" OFF)
    """
TORCH = """\
    import types
    __version__ = "2.13.0a0+git1234567"
    mps = types.SimpleNamespace(is_built=lambda: True)
    backends = types.SimpleNamespace(mps=mps)
    """


class FullBuildTest(CheckoutTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.record = self.directory / "record.json"
        environment = {"RECORD": str(self.record)}
        for name in list(os.environ):
            if name.startswith(("USE_", "BUILD_")):
                environment[name] = ""
        self.enterContext_(mock.patch.dict(os.environ, environment))
        for name in environment:
            if name != "RECORD":
                del os.environ[name]

    def prepare(self) -> None:
        """A Mac with the tools, and a checkout whose setup.py notes how it is called."""
        self.commit(
            {
                "setup.py": SETUP,
                "CMakeLists.txt": CMAKE,
                "third_party/pybind11/CMakeLists.txt": "",
            }
        )
        self.apply()
        write_files(self.directory / "built", {"torch/__init__.py": TORCH})
        for tool in ("cmake", "ninja"):
            write_files(self.directory / "bin", {tool: "#!/bin/sh\n"})
            (self.directory / "bin" / tool).chmod(0o755)
        path = f"{self.directory / 'bin'}{os.pathsep}{os.environ['PATH']}"
        built = str(self.directory / "built")
        self.enterContext_(mock.patch.dict(os.environ, {"PATH": path, "PYTHONPATH": built}))
        self.enterContext_(mock.patch("mpskit.building.full.is_mac", return_value=True))

    def build(self, *options: str):
        return self.mpskit(
            *("build", self.root, "--patch-set", self.patch_set, "--target", "full"),
            *("--out", self.directory / "out", *options),
        )

    def test_elsewhere_than_on_a_mac(self) -> None:
        self.apply()
        with mock.patch("mpskit.building.full.is_mac", return_value=False):
            outcome = self.build()
        self.assertEqual(outcome.exit_code, 3, outcome)
        self.assertIn("full: unavailable", outcome.output)
        self.assertIn("needs a Mac", outcome.output)
        self.assertIn("the targets codegen, kernels and host cover", outcome.output)

    def test_builds_in_the_checkout_with_the_options_that_it_has(self) -> None:
        self.prepare()
        outcome = self.build("--log", str(self.directory / "log"))
        self.assertEqual(outcome.exit_code, 0, outcome)
        record = json.loads(self.record.read_text())
        self.assertEqual(record["arguments"], ["develop"])
        self.assertEqual(record["cwd"], str(self.root))
        self.assertEqual(
            record["options"],
            {"BUILD_TEST": "0", "USE_DISTRIBUTED": "0", "USE_KINETO": "0", "USE_MPS": "1"},
        )
        self.assertIn("build, from scratch", outcome.output)
        self.assertIn("import torch (", outcome.output)
        self.assertIn("2.13.0a0+git", outcome.output)
        self.assertIn("[2/2] Building b", (self.directory / "log").read_text())

    def test_the_users_own_settings_stay(self) -> None:
        self.prepare()
        with mock.patch.dict(os.environ, {"USE_DISTRIBUTED": "1"}):
            self.build()
        self.assertEqual(json.loads(self.record.read_text())["options"]["USE_DISTRIBUTED"], "1")

    def test_incremental(self) -> None:
        self.prepare()
        write_files(self.root, {"build/CMakeCache.txt": ""})
        self.assertIn("build, incremental", self.build().output)

    def test_through_pip_where_the_base_says_so(self) -> None:
        from mpskit.building.full import build_command

        write_files(
            self.root, {"README.md": "python -m pip install --no-build-isolation -v -e .\n"}
        )
        self.assertEqual(
            build_command(self.root),
            [sys.executable, *"-m pip install --no-build-isolation -v -e .".split()],
        )

    def test_failed_build(self) -> None:
        self.prepare()
        with mock.patch.dict(os.environ, {"BREAK": "1"}):
            outcome = self.build()
        self.assertEqual(outcome.exit_code, 1)
        self.assertIn("FAILED  build, from scratch", outcome.output)
        self.assertIn("Square.mm:3:1: error: unknown type name 'Tensr'", outcome.output)

    def test_built_without_mps(self) -> None:
        self.prepare()
        write_files(self.directory / "built", {"torch/__init__.py": TORCH.replace("True", "False")})
        outcome = self.build()
        self.assertEqual(outcome.exit_code, 1)
        self.assertIn("torch was built, but importing it says: 2.13.0a0+git", outcome.output)

    def test_missing_submodules(self) -> None:
        self.prepare()
        (self.root / "third_party/pybind11/CMakeLists.txt").unlink()
        outcome = self.build()
        self.assertEqual(outcome.exit_code, 1)
        self.assertIn("submodule update --init --recursive", outcome.output)

    def test_missing_tools(self) -> None:
        self.prepare()
        with mock.patch("mpskit.building.full.shutil.which", return_value=None):
            outcome = self.build()
        self.assertEqual(outcome.exit_code, 3)
        self.assertIn("needs cmake and ninja", outcome.output)

    def test_no_whole_checkout(self) -> None:
        self.prepare()
        (self.root / "setup.py").unlink()
        self.assertIn("it is no whole PyTorch checkout", self.build().output)

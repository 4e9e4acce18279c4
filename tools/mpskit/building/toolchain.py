"""Compilers for Objective-C++ that make arm64 macOS objects: Apple's, or zig's on any machine."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mpskit.building.context import is_mac
from mpskit.building.process import Finished, Log, run
from mpskit.building.result import UnavailableError
from mpskit.building.tools import answer

DEPLOYMENT_TARGET = "14.0"
DECLARATIONS = Path(__file__).parent / "declarations"


@dataclass(frozen=True)
class Toolchain:
    """A compiler command. ``has_sdk`` says whether Apple's own framework headers come with it."""

    name: str
    command: tuple[str, ...]
    has_sdk: bool
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def framework_dirs(self) -> tuple[Path, ...]:
        """Where framework headers are found that the compiler does not know of itself."""
        return () if self.has_sdk else (DECLARATIONS,)

    def compile(self, arguments: Sequence[str | Path], log: Log) -> Finished:
        """Runs the compiler with ``arguments`` added."""
        return run([*self.command, *arguments], log=log, environment=self.environment)


@contextmanager
def open_toolchain() -> Iterator[Toolchain]:
    """The toolchain of this machine: Apple's on a Mac that has an SDK, else the ziglang package's.

    Raises:
        UnavailableError: there is neither.
    """
    if is_mac() and (sdk := answer("xcrun", "--sdk", "macosx", "--show-sdk-version")):
        clang = ("xcrun", "--sdk", "macosx", "clang++", "-arch", "arm64")
        target = f"-mmacosx-version-min={DEPLOYMENT_TARGET}"
        yield Toolchain(f"Apple clang, macOS {sdk} SDK", (*clang, target), has_sdk=True)
        return
    if importlib.util.find_spec("ziglang") is None:
        raise UnavailableError(
            "Compiling host code needs a macOS SDK or the ziglang package.",
            hint="Install it: pip install 'mpskit[compiler]'"
            + ("; or on this Mac: xcode-select --install" if is_mac() else ""),
        )
    zig = (sys.executable, "-m", "ziglang", "c++", "-target", f"aarch64-macos.{DEPLOYMENT_TARGET}")
    # zig answers from its cache without the warnings of the run that filled it, so each run has
    # a cache of its own; a cold one costs no more than half a second.
    with tempfile.TemporaryDirectory(prefix="mpskit-zig-") as folder:
        caches = {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
        yield Toolchain("zig c++, mpskit's declarations", zig, has_sdk=False, environment=caches)

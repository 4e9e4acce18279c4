"""What this machine has of all that mpskit can use, and what that makes possible."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mpskit.building.context import is_mac
from mpskit.building.tools import answer
from mpskit.checkout.checkout import Checkout
from mpskit.errors import MpskitError
from mpskit.metal.host_compiler import find_compiler
from mpskit.patching import load_patch_set, status

# What the checkout needs beside what the patch set requires of it.
_NEEDED = ("torchgen/gen.py", "aten/src/ATen/templates")

# Step, command, whether it belongs to the main job, and the groups of tools it needs one each of.
_ABILITIES = (
    ("apply the patch set", "mpskit apply", True, [["git"]]),
    ("run the kernels on the cpu", "mpskit test", True, [["torch"], ["C++ compiler"]]),
    ("run the kernels on an NVIDIA GPU", "backend='cuda'", False, [["NVIDIA GPU"], ["cuda-core"]]),
    ("run the kernels on a Mac's GPU", "mpskit test --backend mps", False, [["Mac's GPU"]]),
    (
        "generate PyTorch's registrations",
        "mpskit build --target codegen",
        False,
        [["PyYAML"]],
    ),
    (
        "compile host code",
        "mpskit build --target host",
        False,
        [["ziglang", "macOS SDK"], ["PyYAML"], ["torch"], ["macholib"]],
    ),
    (
        "build PyTorch",
        "mpskit build --target full",
        False,
        [["macOS"], ["macOS SDK"], ["cmake"], ["ninja"]],
    ),
)


@dataclass(frozen=True)
class Tool:
    """Something that mpskit uses: what was found of it, or the command that installs it."""

    name: str
    found: str | None
    install: str = ""

    @property
    def present(self) -> bool:
        return self.found is not None


@dataclass(frozen=True)
class Ability:
    """A step of the job, and the tools it lacks; ``essential`` ones make up the main job."""

    name: str
    command: str
    essential: bool
    missing: tuple[str, ...]

    @property
    def possible(self) -> bool:
        return not self.missing


@dataclass(frozen=True)
class CheckoutReport:
    """A checkout: which PyTorch, what the patch set comes to on it, and what it lacks."""

    root: str
    version: str | None
    head: str
    patch_set: str
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Diagnosis:
    """All of it; ``healthy`` where the main job can run."""

    tools: tuple[Tool, ...]
    abilities: tuple[Ability, ...]
    checkout: CheckoutReport | None

    @property
    def healthy(self) -> bool:
        possible = all(item.possible for item in self.abilities if item.essential)
        return possible and not (self.checkout and self.checkout.problems)

    def to_json(self) -> dict[str, Any]:
        return {
            "healthy": self.healthy,
            "tools": [asdict(tool) for tool in self.tools],
            "abilities": [
                {**asdict(ability), "possible": ability.possible} for ability in self.abilities
            ],
            "checkout": asdict(self.checkout) if self.checkout else None,
        }


def diagnose(checkout: Path | None = None, patch_set: Path | None = None) -> Diagnosis:
    """Looks at this machine, and at ``checkout`` where one is named.

    Raises:
        MpskitError: ``checkout`` is no PyTorch checkout.
    """
    tools = tuple(look() for look in _TOOLS)
    absent = {tool.name for tool in tools if not tool.present}
    abilities = tuple(
        Ability(name, command, essential, _missing(needs, absent))
        for name, command, essential, needs in _ABILITIES
    )
    report = _checkout_report(Checkout.open(checkout), patch_set) if checkout else None
    return Diagnosis(tools, abilities, report)


def _missing(needs: Sequence[Sequence[str]], absent: set[str]) -> tuple[str, ...]:
    """Of each group of ``needs`` one tool is enough; the first is what to install."""
    return tuple(group[0] for group in needs if absent.issuperset(group))


def _python() -> Tool:
    version = f"{platform.python_version()} ({sys.executable})"
    return Tool("Python", version)


def _operating_system() -> Tool:
    system = f"{platform.system()} {platform.release()} on {platform.machine()}"
    return Tool("operating system", system)


def _mac() -> Tool:
    version = platform.mac_ver()[0] if is_mac() else None
    return Tool("macOS", version, "needs a Mac; nothing else can stand in for it")


def _package(distribution: str, install: str, name: str | None = None) -> Callable[[], Tool]:
    def look() -> Tool:
        try:
            version = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            version = None
        return Tool(name or distribution, version, install)

    return look


def _program(name: str, install: str, *arguments: str) -> Callable[[], Tool]:
    def look() -> Tool:
        return Tool(name, answer(name, *(arguments or ("--version",))), install)

    return look


def _compiler() -> Tool:
    install = "pip install 'mpskit[compiler]', or apt install g++, or xcode-select --install"
    try:
        compiler = find_compiler()
    except MpskitError:
        return Tool("C++ compiler", None, install)
    version = compiler.version.strip().partition("\n")[0]
    return Tool("C++ compiler", f"{version} ({' '.join(compiler.command)})")


def _sdk() -> Tool:
    version = answer("xcrun", "--sdk", "macosx", "--show-sdk-version") if is_mac() else None
    install = "xcode-select --install" if is_mac() else "comes with Xcode, on a Mac"
    return Tool("macOS SDK", version, install)


def _nvidia() -> Tool:
    query = ("--query-gpu=name,driver_version", "--format=csv,noheader")
    return Tool("NVIDIA GPU", answer("nvidia-smi", *query), "needs an NVIDIA GPU and its driver")


def _mac_gpu() -> Tool:
    found = None
    if is_mac() and importlib.util.find_spec("torch"):
        import torch

        found = platform.machine() if torch.backends.mps.is_available() else None
    return Tool("Mac's GPU", found, "needs a Mac with macOS 14 or newer and torch's macOS wheel")


_TOOLS: tuple[Callable[[], Tool], ...] = (
    _operating_system,
    _python,
    _package("torch", "pip install torch"),
    _program("git", "apt install git, or on a Mac xcode-select --install"),
    _compiler,
    _package("ziglang", "pip install 'mpskit[compiler]'"),
    _package("PyYAML", "pip install pyyaml"),
    _package("macholib", "pip install macholib"),
    _package("cuda-core", "pip install 'mpskit[cuda]'"),
    _nvidia,
    _mac,
    _sdk,
    _mac_gpu,
    _program("cmake", "pip install cmake"),
    _program("ninja", "pip install ninja"),
)


def _checkout_report(checkout: Checkout, patch_set: Path | None) -> CheckoutReport:
    found = status(checkout, load_patch_set(patch_set))
    problems = [unmet.reason for planned in found.plan.patches for unmet in planned.unmet]
    problems += [f"{path} is missing" for path in _NEEDED if not (checkout.root / path).exists()]
    return CheckoutReport(
        root=str(checkout.root),
        version=found.version,
        head=found.head.name,
        patch_set=found.plan.state.value,
        problems=tuple(problems + list(found.blockers)),
    )

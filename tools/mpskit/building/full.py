"""The ``full`` target: PyTorch's own editable build, with what MPS work does not need left out."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from pathlib import Path

from mpskit.building.context import Context, is_mac
from mpskit.building.process import run
from mpskit.building.result import Built, Step, UnavailableError
from mpskit.errors import MpskitError

_LIMITS = "Built and imported; `mpskit test --backend mps` and test/test_mps.py run it."

# Parts that cost most of a build's time and that no MPS kernel goes through. Set only where the
# base has the option: they come and go.
_OPTIONS = {
    "USE_MPS": "1",
    "BUILD_TEST": "0",
    "USE_CUDA": "0",
    "USE_DISTRIBUTED": "0",
    "USE_FBGEMM": "0",
    "USE_ITT": "0",
    "USE_KINETO": "0",
    "USE_MKLDNN": "0",
    "USE_NNPACK": "0",
    "USE_PYTORCH_QNNPACK": "0",
    "USE_XNNPACK": "0",
}
_SUBMODULE_MARK = "third_party/pybind11/CMakeLists.txt"
_NINJA_PROGRESS = re.compile(r"^\[(\d+)/(\d+)\]")
_TAIL_LINES = 20


def is_incremental(root: Path) -> bool:
    """Whether an earlier build left its folder, so that the next one takes minutes."""
    return (root / "build/CMakeCache.txt").is_file()


def build(context: Context) -> Built:
    """Builds the checkout into the Python that runs this, then imports it.

    Raises:
        UnavailableError: this is no Mac, or a tool is missing.
        MpskitError: the checkout has no sources of PyTorch's dependencies.
    """
    root = context.subject.root
    _refuse_machine()
    _refuse_checkout(root)
    incremental = is_incremental(root)
    environment = build_environment(root)
    context.announce("full build", 0, 1)

    def on_line(line: str) -> None:
        if match := _NINJA_PROGRESS.match(line):
            context.announce("full build", int(match[1]), int(match[2]))

    finished = run(
        build_command(root),
        log=context.log,
        cwd=root,
        environment=environment,
        on_line=on_line,
    )
    name = f"build, {'incremental' if incremental else 'from scratch'}"
    if finished.status != 0:
        messages = _last_errors(finished.output)
        return Built((Step(name, False, finished.seconds, messages=messages),), _LIMITS)
    settings = " ".join(f"{option}={value}" for option, value in environment.items())
    return Built((Step(name, True, finished.seconds, settings), _import(context)), _LIMITS)


def build_environment(root: Path) -> dict[str, str]:
    """The options that this base has, each as its build takes it; the user's own settings stay."""
    known = known_options(root)
    return {
        name: value for name, value in _OPTIONS.items() if name in known and name not in os.environ
    }


def known_options(root: Path) -> frozenset[str]:
    """The build options that the base's CMakeLists.txt declares or its setup.py describes."""
    cmake, setup = (_read(root / name) for name in ("CMakeLists.txt", "setup.py"))
    declared = re.findall(r"\b(?:cmake_dependent_)?option\(\s*(\w+)", cmake, re.IGNORECASE)
    described = re.findall(r"\b((?:USE|BUILD)_\w+)\b", setup)
    return frozenset(declared + described)


def build_command(root: Path) -> list[str]:
    """The editable build that the base's own documents name: through pip, or setup.py before."""
    documents = _read(root / "CONTRIBUTING.md") + _read(root / "README.md")
    if "--no-build-isolation" in documents:
        return [sys.executable, "-m", "pip", "install", "--no-build-isolation", "-v", "-e", "."]
    return [sys.executable, "setup.py", "develop"]


def _refuse_machine() -> None:
    if not is_mac():
        raise UnavailableError(
            "A full build of PyTorch with MPS needs a Mac.",
            hint="On this machine the targets codegen, kernels and host cover the generated "
            "registration, the Metal sources and the Objective-C++; build fully on a Mac.",
        )
    missing = [name for name in ("cmake", "ninja") if shutil.which(name) is None]
    if missing:
        raise UnavailableError(
            f"A full build needs {' and '.join(missing)}.",
            hint=f"Install: {sys.executable} -m pip install {' '.join(missing)}",
        )


def _refuse_checkout(root: Path) -> None:
    if not (root / "setup.py").is_file():
        raise MpskitError(
            f"{root} has no setup.py: it is no whole PyTorch checkout.",
            hint="Clone one: git clone https://github.com/pytorch/pytorch",
        )
    if not (root / _SUBMODULE_MARK).is_file():
        raise MpskitError(
            f"The submodules of {root} are not there.",
            hint=f"Get them: git -C {root} submodule update --init --recursive",
        )


def _last_errors(output: str) -> tuple[str, ...]:
    lines = output.strip().splitlines()
    errors = [line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)]
    return tuple((errors or lines)[-_TAIL_LINES:])


def _import(context: Context) -> Step:
    """Imports what was built, from elsewhere than the checkout, and asks it for MPS."""
    started = time.monotonic()
    program = (
        "import torch; print(torch.__version__, torch.backends.mps.is_built(), torch.__file__)"
    )
    finished = run([sys.executable, "-c", program], log=context.log, cwd=context.out)
    answer = finished.output.strip().rpartition("\n")[2]
    version, _, rest = answer.partition(" ")
    passed = finished.status == 0 and rest.startswith("True")
    messages = () if passed else (f"torch was built, but importing it says: {answer}",)
    return Step("import torch", passed, time.monotonic() - started, version, messages)


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""

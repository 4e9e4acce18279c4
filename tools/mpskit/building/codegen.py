"""The ``codegen`` target: the checkout's own torchgen, and whether it reaches our kernels."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

from mpskit.building.context import Context
from mpskit.building.process import run
from mpskit.building.result import Built, Step, UnavailableError
from mpskit.building.signatures import declared_signature, defined_signature
from mpskit.building.subject import Registration, Subject
from mpskit.errors import MpskitError
from mpskit.metal import cache

_LIMITS = "It does not compile the generated code; target `host` compiles against its headers."

_BACKENDS = "CPU MPS CompositeExplicitAutograd CompositeImplicitAutograd Meta".split()
_STAMP = "inputs.sha256"
_ATEN = "aten/src/ATen"


def build(context: Context) -> Built:
    """Generates, then looks for each kernel that the patch set expects to be reached."""
    started = time.monotonic()
    context.announce("torchgen", 0, 1)
    folder, fresh = _generate(context)
    context.announce("torchgen", 1, 1)
    count = sum(1 for _ in (folder / "ATen").rglob("*.*"))
    generated = Step(
        "torchgen",
        True,
        time.monotonic() - started,
        f"{count} files, {'generated' if fresh else 'unchanged since they were generated'}",
        product=str(folder),
    )
    checks = [_check(context.subject, item, folder) for item in context.subject.registrations]
    return Built((generated, *checks), _LIMITS)


def generate(context: Context) -> Path:
    """The include folder with the generated ``ATen/…``; made anew where its inputs changed.

    Raises:
        UnavailableError: this Python lacks what torchgen needs.
        MpskitError: the checkout has no torchgen, or it failed.
    """
    return _generate(context)[0]


def _generate(context: Context) -> tuple[Path, bool]:
    root, folder = context.subject.root, context.out / "codegen"
    if not (root / "torchgen/gen.py").is_file():
        raise MpskitError(
            f"{root} has no torchgen/gen.py.",
            hint="Name a whole PyTorch checkout, or make a small one: mpskit skeleton DIR",
        )
    stamp = cache.key(_inputs(root))
    with FileLock(context.out / ".codegen.lock"):
        if _read(folder / _STAMP) == stamp:
            return folder, False
        _refresh(context, folder, stamp)
        return folder, True


def _refresh(context: Context, folder: Path, stamp: str) -> None:
    """Generates anew; ``folder`` is as it was, or has all of it."""
    if importlib.util.find_spec("yaml") is None:
        raise UnavailableError("torchgen needs PyYAML.", hint="Install it: pip install pyyaml")
    with tempfile.TemporaryDirectory(dir=context.out, prefix=".codegen-") as scratch:
        draft = Path(scratch, "codegen")
        draft.mkdir()
        _run_torchgen(context, draft)
        (draft / _STAMP).write_text(stamp)
        # First, so that a folder which is half removed is never taken for a whole one.
        (folder / _STAMP).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        draft.replace(folder)


def _inputs(root: Path) -> Iterator[str | bytes]:
    """All that the generated text depends on."""
    yield sys.version
    yield from _BACKENDS
    for top, pattern in (
        ("torchgen", "*.py"),
        (f"{_ATEN}/native", "*.yaml"),
        (f"{_ATEN}/templates", "*"),
    ):
        for file in sorted((root / top).rglob(pattern)):
            if file.is_file():
                yield file.relative_to(root).as_posix()
                yield file.read_bytes()


def _run_torchgen(context: Context, folder: Path) -> None:
    root = context.subject.root
    # Ahead of the user's own, so that it is this checkout's torchgen.
    python_path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    finished = run(
        [
            *(sys.executable, "-m", "torchgen.gen"),
            *("--source-path", root / _ATEN),
            *("--install-dir", folder / "ATen"),
            *("--per-operator-headers", "--mps"),
            *("--generate", "headers", "sources"),
            *("--backend-whitelist", *_BACKENDS),
        ],
        log=context.log,
        # torchgen writes some files relative to where it runs.
        cwd=folder,
        environment={"PYTHONPATH": python_path, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    if finished.status != 0:
        last = finished.output.strip().rpartition("\n")[2]
        raise MpskitError(
            f"torchgen of {root} failed: {last or f'exit status {finished.status}'}",
            hint="See all that it printed with --log FILE; mend native_functions.yaml or update "
            "the checkout.",
        )


def _read(file: Path) -> str | None:
    try:
        return file.read_text()
    except OSError:
        return None


def _check(subject: Subject, item: Registration, folder: Path) -> Step:
    started = time.monotonic()
    messages: list[str] = []
    signature = ""
    try:
        signature = _signature(subject, item, folder)
        _refuse_unregistered(item, folder)
    except MpskitError as error:
        messages.append(error.message)
    return Step(
        f"{item.function} on {item.key}",
        not messages,
        time.monotonic() - started,
        signature,
        tuple(messages),
    )


def _signature(subject: Subject, item: Registration, folder: Path) -> str:
    """The kernel's signature, the same in the generated header and in the patch's host code."""
    header = folder / "ATen/ops" / f"{_root_name(item.function)}_native.h"
    declared = declared_signature(_read(header) or "", item.kernel)
    if declared is None:
        raise MpskitError(f"{header} declares no kernel {item.kernel}.")
    sources = (*subject.host_sources, *subject.edited_host_sources)
    for path in sources:
        defined = defined_signature(subject.read(path), item.kernel)
        if defined is None:
            continue
        if defined != declared:
            raise MpskitError(
                f"{path} defines {defined}, and the generated header declares {declared}."
            )
        return str(declared)
    raise MpskitError(f"None of {', '.join(sources) or 'no .mm files'} defines {item.kernel}.")


def _root_name(function: str) -> str:
    """``_log_softmax`` of ``_log_softmax.out``; in-place functions share a header, too."""
    name = function.partition(".")[0]
    is_dunder = name.startswith("__") and name.endswith("__")
    return name if is_dunder else name.removesuffix("_")


def _refuse_unregistered(item: Registration, folder: Path) -> None:
    # One file, or several numbered ones, as torchgen's version has it.
    pattern = rf"Register{item.key}(_\d+)?\.cpp"
    files = [file for file in (folder / "ATen").iterdir() if re.fullmatch(pattern, file.name)]
    text = "".join(file.read_text() for file in files)
    if f'm.impl("{item.function}",' not in text:
        raise MpskitError(f"Register{item.key}.cpp registers no {item.function}.")
    if not re.search(rf"at::native::(structured_)?{item.kernel}\b", text):
        raise MpskitError(f"Register{item.key}.cpp does not call {item.kernel}.")

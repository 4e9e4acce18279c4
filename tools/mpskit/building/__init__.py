"""Builds what can be built of an applied patch set on this machine.

subject = Subject.find(checkout, patch_set)
build(Context(subject, default_out(subject.root)), ("codegen", "host"))
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mpskit.building import codegen, full, host, kernels
from mpskit.building.context import Context, is_mac
from mpskit.building.process import Log
from mpskit.building.result import (
    BuildResult,
    Built,
    Outcome,
    Step,
    TargetResult,
    UnavailableError,
)
from mpskit.building.subject import Registration, Subject
from mpskit.checkout.git import disk_errors_explained
from mpskit.errors import MpskitError
from mpskit.metal import cache

__all__ = [
    "TARGETS",
    "BuildResult",
    "Context",
    "Log",
    "Outcome",
    "Registration",
    "Step",
    "Subject",
    "TargetResult",
    "UnavailableError",
    "build",
    "default_out",
]

_BUILDERS: dict[str, Callable[[Context], Built]] = {
    "codegen": codegen.build,
    "kernels": kernels.build,
    "host": host.build,
    "full": full.build,
}
TARGETS = tuple(_BUILDERS)


def build(context: Context, requested: Sequence[str] = ()) -> BuildResult:
    """Builds the ``requested`` targets, in the order of `TARGETS`.

    With none requested: all but ``full``, and that too on a Mac where a build folder is there.

    A target that fails does not keep the others from being built.

    Raises:
        MpskitError: ``context.out`` cannot be made, or the disk is full.
    """
    started = time.monotonic()
    chosen = requested or _default_targets(context.subject.root)
    _make_out(context)
    with disk_errors_explained(context.out):
        results = [_build_target(context, name) for name in TARGETS if name in chosen]
    return BuildResult(tuple(results), tuple(requested), time.monotonic() - started)


def default_out(root: Path) -> Path:
    """Where the products of a checkout's build go: a folder of its own in mpskit's cache."""
    digest = hashlib.sha256(str(root).encode()).hexdigest()[:12]
    return cache.directory() / "builds" / f"{root.name}-{digest}"


def _default_targets(root: Path) -> tuple[str, ...]:
    with_full = is_mac() and full.is_incremental(root)
    return tuple(name for name in TARGETS if name != "full" or with_full)


def _make_out(context: Context) -> None:
    out, root = context.out, context.subject.root
    if out.resolve().is_relative_to(root.resolve()):
        raise MpskitError(
            f"{out} lies inside the checkout.", hint="Name a folder outside it with --out DIR."
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MpskitError(
            f"{out} cannot be made: {error.strerror}.",
            hint="Name a folder of yours with --out DIR.",
        ) from None


def _build_target(context: Context, target: str) -> TargetResult:
    started = time.monotonic()
    try:
        built = _BUILDERS[target](context)
    except UnavailableError as error:
        seconds = time.monotonic() - started
        return TargetResult(target, (), seconds, unavailable=error.message, hint=error.hint)
    except MpskitError as error:
        seconds = time.monotonic() - started
        failed = Step(target, False, seconds, messages=(error.message,))
        return TargetResult(target, (failed,), seconds, hint=error.hint)
    return TargetResult(target, built.steps, time.monotonic() - started, built.limits)

"""The ``host`` target: each .mm file of the patch set as Objective-C++ for arm64 macOS."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

from mpskit.building import codegen
from mpskit.building.context import Context
from mpskit.building.objective_cpp import ObjectiveCpp, Variant
from mpskit.building.result import Built, Step
from mpskit.building.subject import Subject
from mpskit.building.toolchain import Toolchain, open_toolchain

_SDK_LIMITS = "The objects are compiled; nothing is linked or run."
_LIMITS = (
    "Compiled against mpskit's declarations of Apple's frameworks, not the SDK's; nothing is "
    "linked or run."
)
_JIT_MACRO = "PYTORCH_JIT_COMPILE_SHADERS"


def build(context: Context) -> Built:
    """Compiles each ``.mm`` file, once for each place that its shader library can come from."""
    subject = context.subject
    with open_toolchain() as toolchain:
        context.announce("generated headers", 0, 1)
        compiler = ObjectiveCpp(context, toolchain, codegen.generate(context))
        variants = list(_variants(subject))
        steps = []
        for done, variant in enumerate(variants):
            context.announce(f"{Path(variant.path).name}, {variant.name}", done, len(variants))
            steps.append(_compile(compiler, variant, subject, toolchain))
    context.announce("host code", len(variants), len(variants))
    return Built(tuple(steps), _limits(subject, toolchain))


def _variants(subject: Subject) -> Iterator[Variant]:
    for path in (*subject.host_sources, *subject.edited_host_sources):
        if _JIT_MACRO not in subject.read(path):
            yield Variant(path, "no shaders")
            continue
        yield Variant(path, "bundled shaders")
        yield Variant(path, "shaders compiled at run time", (f"-D{_JIT_MACRO}",))


def _compile(
    compiler: ObjectiveCpp, variant: Variant, subject: Subject, toolchain: Toolchain
) -> Step:
    step = compiler.compile(variant)
    if step.passed or toolchain.has_sdk or variant.path not in subject.edited_host_sources:
        return step
    before = subject.edited_host_sources[variant.path]
    if before is None:
        detail = "no object: it needs the SDK, and its text before the edit is not known"
        return Step(step.name, True, step.seconds, detail)
    return compiler.compare(variant, before)


def _limits(subject: Subject, toolchain: Toolchain) -> str:
    limits = _SDK_LIMITS if toolchain.has_sdk else _LIMITS
    torch, base = importlib.metadata.version("torch").partition("+")[0], subject.version
    if base and not base.startswith(torch):
        limits += f" Headers that this base, {base}, does not carry came from torch {torch}."
    return limits

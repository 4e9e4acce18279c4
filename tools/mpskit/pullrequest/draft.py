"""The first draft of a pull request's text, rendered from the patch set and a suite's result."""

from __future__ import annotations

from collections.abc import Iterable

from mpskit.markdown import markdown_table
from mpskit.patching import Patch, PatchSet
from mpskit.verify.suite import SuiteResult


def draft(patch_set: PatchSet, suite: SuiteResult) -> str:
    """Markdown for the pull request of every patch of the set.

    Args:
        patch_set: says what changes, and why.
        suite: says what was tested, on which backend, and how accurate it was.
    """
    return "\n".join(_patch(patch, suite) for patch in patch_set.patches)


def _patch(patch: Patch, suite: SuiteResult) -> str:
    sections = [
        f"# {patch.title}",
        patch.why.strip(),
        "## Changes",
        _bullets([f"`{edit.path}`: {edit.describe()}" for edit in patch.edits]),
        _bullets([f"`{file.path}`: added" for file in patch.files]),
        "## Test plan",
        f"PyTorch's OpInfo samples and samples of our own, on the unmodified Metal source "
        f"(mpskit's {suite.backend} backend), against a float64 reference: "
        f"{suite.passed} passed, {suite.failed} failed, {suite.skipped} skipped.",
        markdown_table(("kernel", "launches"), sorted(suite.launches_by_kernel.items())),
        "## Accuracy",
        markdown_table(
            ("dtype", "samples", "largest error in ULP"),
            [
                (dtype, count, f"{suite.worst[dtype].ulp:.2f}")
                for dtype, count in sorted(suite.samples.items())
            ],
        ),
        "## Latency",
        "Not measured yet.",
        "Labels: `module: mps`, `ciflow/mps`, `release notes: mps`, `topic: performance`",
    ]
    return "\n\n".join(sections) + "\n"


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)

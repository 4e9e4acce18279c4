"""Checks that need the kernels run: upstream's tests on every branch, and the sanitizer."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpskit.pullrequest.applied import PatchCommit
from mpskit.pullrequest.checks.check import Check, judged, not_run
from mpskit.pullrequest.declarations import Exemption, exempt
from mpskit.pullrequest.upstream_tests import UpstreamRun, run_upstream_tests
from mpskit.verify import mps_tests
from mpskit.verify.reports.result import split_host_name

if TYPE_CHECKING:
    from opinfo.definition import Definition

BRANCHES = "plan branches in upstream tests"
SANITIZER = "sanitizer"


def definitions_of(item: PatchCommit) -> tuple[Definition, ...]:
    """The ops of the patch that mpskit can put kernels in the place of."""
    from opinfo.definitions import definitions_in

    functions = {expected.function for expected in item.patch.expects}
    known = definitions_in(item.definitions_dir)
    return tuple(definition for definition in known if definition.function in functions)


def upstream_test_files(item: PatchCommit) -> list[str]:
    """The test files that the patch adds or changes."""
    return [path for path in item.texts() if path.startswith("test/") and path.endswith(".py")]


def run(item: PatchCommit) -> UpstreamRun | None:
    """Runs the patch's upstream tests; None where it cannot.

    Files of the patch's own run as they are in the work tree. What it puts into test_mps.py,
    which needs a Mac even to be imported, runs in mpskit's stand-in for that file.
    """
    functions = [definition.function for definition in definitions_of(item)]
    tests, root = upstream_test_files(item), item.checkout.root
    if not functions or not tests:
        return None
    with tempfile.TemporaryDirectory(prefix="mpskit-") as folder:
        stand_in = Path(folder) / Path(mps_tests.PATH).name
        stand_in.write_text(mps_tests.patched_stand_in(item.patch) or "")
        files = [stand_in if path == mps_tests.PATH else root / path for path in tests]
        return run_upstream_tests(functions, root, files, item.definitions_dir)


def skipped(item: PatchCommit, why: str) -> list[Check]:
    return [not_run(name, why, item.patch.name) for name in (BRANCHES, SANITIZER)]


def judge(item: PatchCommit, found: UpstreamRun, declared: Sequence[Exemption]) -> list[Check]:
    """What the run says about the patch."""
    return [branches_are_covered(item, found, declared), sanitizer_is_clean(item, found)]


def branches_are_covered(
    item: PatchCommit, found: UpstreamRun, declared: Sequence[Exemption]
) -> Check:
    """Each kernel that a branch of the plan launches, for each dtype, was launched by a test.

    And each of them is described in the series, for the pull request to say when it is used.
    """
    wanted = sorted({name for names in found.branches.values() for name in names})
    missing = [name for name in wanted if not found.launches.get(name)]
    problems = [*found.problems, *(f"{n} not launched" for n in missing if not exempt(n, declared))]
    described = {use.name for use in item.patch.kernels}
    kernels = dict.fromkeys(split_host_name(name)[0] for name in wanted)
    problems += [f"series.toml describes no kernel {n}" for n in kernels if n not in described]
    covered = len(wanted) - len(missing)
    why = f"{found.tests} tests launched {covered} of {len(wanted)} kernels"
    if missing and not problems:
        used = dict.fromkeys(entry for name in missing if (entry := exempt(name, declared)))
        why += "; declared: " + ", ".join(f"{entry.subject} ({entry.why})" for entry in used)
    return judged(BRANCHES, problems, why, item.patch.name)


def sanitizer_is_clean(item: PatchCommit, found: UpstreamRun) -> Check:
    """Nothing was reported while every branch of the plan ran under the sanitizer."""
    name, patch = SANITIZER, item.patch.name
    if not found.sanitized and not found.reports:
        return not_run(name, f"the {found.backend} backend has none", patch)
    return judged(name, found.reports, f"{found.sanitized} launches, no reports", patch)

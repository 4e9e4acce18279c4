"""Runs the tests that go upstream, and samples under the sanitizer, with the kernels in place.

A program of its own, so that a kernel that crashes ends it and not its caller::

    python -m mpskit.pullrequest.upstream_tests FUNCTION PATCH_DIR TEST_FILE...

prints an ``UpstreamRun`` as JSON. FUNCTION is the op in native_functions.yaml, as a patch's
``expects`` names it.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import unittest
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mpskit.errors import MpskitError

# As many as the largest Apple GPU has: the plan then needs the most rows to fill it.
_CORES = 80


@dataclass(frozen=True)
class UpstreamRun:
    """What the upstream tests have shown, and what the sanitizer has.

    Attributes:
        backend: of mpskit.metal that ran the kernels.
        tests: how many ran.
        problems: a line for each that failed or was skipped.
        launches: by host name of the kernel, of the tests.
        branches: by branch of the plan, the host names that it launches, all dtypes.
        sanitized: launches watched by the sanitizer.
        reports: the sanitizer's, the first line of each.
    """

    backend: str
    tests: int
    problems: list[str]
    launches: dict[str, int]
    branches: dict[str, list[str]]
    sanitized: int
    reports: list[str]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def is_known(function: str) -> bool:
    """Whether mpskit can put kernels in the place of ``function``."""
    from opinfo.definitions import DEFINITIONS

    return any(definition.function == function for definition in DEFINITIONS)


def run_upstream_tests(function: str, patch_dir: Path, tests: Sequence[str]) -> UpstreamRun:
    """Runs the files ``tests``, paths below ``patch_dir``, in a process of its own.

    Raises:
        MpskitError: that process ended without an answer.
    """
    files = [str(patch_dir / path) for path in tests]
    module = [sys.executable, "-m", __name__, function, str(patch_dir), *files]
    process = subprocess.run(module, capture_output=True, text=True)
    try:
        return UpstreamRun(**json.loads(process.stdout))
    except ValueError:
        said = process.stderr.strip().splitlines()
        raise MpskitError(
            f"The upstream tests ended with exit code {process.returncode}: "
            f"{said[-1] if said else 'no reason given'}",
            hint=f"Run them yourself: {' '.join(module)}",
        ) from None


def _run(function: str, patch_dir: Path, files: Iterable[Path]) -> UpstreamRun:
    import torch

    from mpskit.verify.reports.result import split_host_name
    from opinfo.definition import MPS_FLOATING_DTYPES, Definition
    from opinfo.definitions import DEFINITIONS
    from opinfo.settings import Settings, configure

    backend = "mps" if torch.backends.mps.is_available() else "cpu"
    configure(Settings(backend, patch_dir))
    definition: Definition = next(item for item in DEFINITIONS if item.function == function)
    suite = unittest.TestSuite(_load(file) for file in files)
    result = unittest.TestResult()
    with definition.under_test(backend=backend, patch_dir=patch_dir, cores=_CORES) as kernels:
        suite.run(result)
    wrong = [(test, text) for test, text in (*result.failures, *result.errors)]
    problems = [f"{test}: {text.strip().splitlines()[-1]}" for test, text in wrong]
    problems += [f"{test} was skipped: {why}" for test, why in result.skipped]
    branches = {
        forcing.name: sorted(
            {name for dtype in MPS_FLOATING_DTYPES for name in forcing.launches(dtype)},
            key=split_host_name,
        )
        for forcing in definition.forcings
    }
    watched, reports = _sanitize(definition, patch_dir) if backend == "cpu" else (0, [])
    return UpstreamRun(
        backend, result.testsRun, problems, dict(kernels.launches), branches, watched, reports
    )


def _load(file: Path) -> unittest.TestSuite:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise MpskitError(f"{file} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def _sanitize(definition: Any, patch_dir: Path) -> tuple[int, list[str]]:
    """Every branch on the samples made for forcing branches, watched."""
    import torch

    from mpskit.metal.sanitizer.reports import SanitizerError

    watched: Counter[str] = Counter()
    reports = []
    for forcing in definition.forcings:
        for sample in definition.entry("forced").sample_inputs("cpu", torch.float32):
            if not forcing.applies(sample):
                continue
            with definition.under_test(
                backend="cpu", patch_dir=patch_dir, sanitize=True, **forcing.options
            ) as kernels:
                try:
                    definition.entry("forced").op(sample.input, *sample.args, **sample.kwargs)
                except SanitizerError as error:
                    reports.append(f"{forcing.name}: {str(error).strip().splitlines()[0]}")
            watched.update(kernels.launches)
    return watched.total(), reports


def _main(function: str, patch_dir: str, *files: str) -> None:
    answer = sys.stdout
    with redirect_stdout(sys.stderr), redirect_stderr(sys.stderr):
        run = _run(function, Path(patch_dir), map(Path, files))
    json.dump(run.to_json(), answer)


if __name__ == "__main__":
    _main(*sys.argv[1:])

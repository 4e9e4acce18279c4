"""Runs the tests that go upstream, and samples under the sanitizer, with the kernels in place.

A program of its own, so that a kernel that crashes ends it and not its caller::

    python -m mpskit.pullrequest.upstream_tests FUNCTIONS DEFINITIONS PATCH_DIR TEST_FILE...

prints an ``UpstreamRun`` as JSON. FUNCTIONS are ops in native_functions.yaml, as a patch's
``expects`` names them, with commas between; DEFINITIONS is the folder that defines them for
`mpskit test`, empty for mpskit's own.
"""

from __future__ import annotations

import importlib.util
import json
import shlex
import subprocess
import sys
import unittest
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpskit.errors import MpskitError

if TYPE_CHECKING:
    from opinfo.definition import Definition, Forcing

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


def run_upstream_tests(
    functions: Sequence[str],
    patch_dir: Path,
    tests: Sequence[Path],
    definitions_dir: Path | None = None,
) -> UpstreamRun:
    """Runs the files ``tests`` with the kernels of ``patch_dir``, in a process of its own.

    Args:
        functions: those in native_functions.yaml whose kernels are put in place.
        definitions_dir: where a patch set defines its ops for the suite; None for mpskit's own.

    Raises:
        MpskitError: that process ended without an answer.
    """
    files = map(str, tests)
    definitions = str(definitions_dir or "")
    names = ",".join(functions)
    module = [sys.executable, "-m", __name__, names, definitions, str(patch_dir), *files]
    process = subprocess.run(module, capture_output=True, text=True)
    try:
        return UpstreamRun(**json.loads(process.stdout))
    except ValueError:
        said = process.stderr.strip().splitlines()
        raise MpskitError(
            f"The upstream tests ended with exit code {process.returncode}: "
            f"{said[-1] if said else 'no reason given'}",
            hint=f"Run them yourself: {shlex.join(module)}",
        ) from None


def _run(definitions: Sequence[Definition], patch_dir: Path, files: Iterable[Path]) -> UpstreamRun:
    import torch

    from mpskit.verify import OpUnderTest
    from mpskit.verify.mps_tests import InPlaceOfMps
    from opinfo.settings import Settings, configure

    backend = "mps" if torch.backends.mps.is_available() else "cpu"
    configure(Settings(backend, patch_dir))
    suite = unittest.TestSuite(_load(file) for file in files)
    result = unittest.TestResult()
    implementations = tuple(
        dict.fromkeys(each for item in definitions for each in item.implementations)
    )
    kernels = OpUnderTest(
        backend,
        implementations=implementations,
        patch_dir=patch_dir,
        spare_float64=True,
        cores=_CORES,
    )
    with InPlaceOfMps(backend), kernels:
        suite.run(result)
    wrong = [(test, text) for test, text in (*result.failures, *result.errors)]
    problems = [f"{test}: {text.strip().splitlines()[-1]}" for test, text in wrong]
    problems += [f"{test} was skipped: {why}" for test, why in result.skipped]
    watched, reports = _sanitize(definitions, patch_dir) if backend == "cpu" else (0, [])
    return UpstreamRun(
        backend,
        result.testsRun,
        problems,
        dict(kernels.launches),
        _branches(definitions),
        watched,
        reports,
    )


def _branches(definitions: Sequence[Definition]) -> dict[str, list[str]]:
    """By branch of each op's plan, the host names that it launches."""
    from mpskit.verify.reports.result import split_host_name
    from opinfo.definition import MPS_FLOATING_DTYPES

    return {
        f"{item.name} {forcing.name}" if len(definitions) > 1 else forcing.name: sorted(
            {name for dtype in MPS_FLOATING_DTYPES for name in forcing.launches(dtype)},
            key=split_host_name,
        )
        for item in definitions
        for forcing in item.forcings
    }


def _load(file: Path) -> unittest.TestSuite:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise MpskitError(f"{file} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def _sanitize(definitions: Sequence[Definition], patch_dir: Path) -> tuple[int, list[str]]:
    """Every branch on the samples made for forcing branches, watched."""
    watched: Counter[str] = Counter()
    reports = []
    for item in definitions:
        for forcing in item.forcings:
            reports += [
                f"{forcing.name}: {report}" for report in _watch(item, forcing, patch_dir, watched)
            ]
    return watched.total(), reports


def _watch(
    definition: Definition, forcing: Forcing, patch_dir: Path, watched: Counter[str]
) -> Iterator[str]:
    """The first line of each report of a branch; adds its launches to ``watched``."""
    import torch

    from mpskit.metal.sanitizer.reports import SanitizerError

    entry = definition.entry("forced")
    for sample in filter(forcing.applies, entry.sample_inputs("cpu", torch.float32)):
        with definition.under_test(
            backend="cpu", patch_dir=patch_dir, sanitize=True, **forcing.options
        ) as kernels:
            try:
                entry.op(sample.input, *sample.args, **sample.kwargs)
            except SanitizerError as error:
                yield str(error).strip().splitlines()[0]
        watched.update(kernels.launches)


def _main(functions: str, definitions_dir: str, patch_dir: str, *files: str) -> None:
    from opinfo.definitions import definitions_in

    answer = sys.stdout
    with redirect_stdout(sys.stderr), redirect_stderr(sys.stderr):
        known = definitions_in(Path(definitions_dir) if definitions_dir else None)
        wanted = [item for item in known if item.function in functions.split(",")]
        run = _run(wanted, Path(patch_dir), map(Path, files))
    json.dump(run.to_json(), answer)


if __name__ == "__main__":
    _main(*sys.argv[1:])

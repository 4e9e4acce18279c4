"""Options of the suite, and the reports that ``mpskit test`` reads from a run.

With ``--report-fd N`` the process that runs pytest writes one JSON object a line to the open file
descriptor N:

    {"event": "collected", "tests": 57}
    {"event": "finished", "test": id, "outcome": "passed" | "failed" | "skipped",
     "message": text, "seconds": 1.5, "evidence": Evidence.to_json() or null}
    {"event": "broken", "where": file, "message": text}         a file that cannot be collected
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from mpskit.metal import BACKENDS
from opinfo.settings import Settings, configure, settings

_EVIDENCE = "opinfo_evidence"
# The modules of tests that any op can have.
_GENERIC = ("test_ops", "test_transforms", "test_gradients")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("opinfo")
    group.addoption("--backend", default="cpu", choices=BACKENDS, help="what runs the kernels")
    group.addoption("--patch-set", type=Path, help="the patch set to test instead of mpskit's own")
    group.addoption("--sanitize", action="store_true", help="watch every access of the kernels")
    group.addoption("--op", action="append", default=[], help="only tests of the op")
    group.addoption("--dtype", action="append", default=[], help="only tests of the dtype")
    group.addoption("--only", metavar="CLASS::TEST", help="only the test of that name")
    group.addoption("--report-fd", type=int, help="file descriptor for JSON reports")


def pytest_configure(config: pytest.Config) -> None:
    configure(
        Settings(
            config.getoption("--backend"),
            config.getoption("--patch-set"),
            config.getoption("--sanitize"),
            tuple(config.getoption("--op")),
        )
    )
    torch.set_num_threads(1)  # the samples are small, and pytest-xdist spreads the tests
    descriptor = config.getoption("--report-fd")
    is_worker = hasattr(config, "workerinput")
    if descriptor is not None and not is_worker:
        config.pluginmanager.register(Reporter(descriptor))
    config.pluginmanager.register(_Evidence())
    tests_of_patch_set = settings().definitions_dir
    if tests_of_patch_set is not None and not is_worker:
        config.args.append(str(tests_of_patch_set))


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leaves out what tests ops of ours, where the patch set has ops of its own."""
    ours = collection_path.parent == Path(__file__).parent
    of_one_op = collection_path.name.startswith("test_") and collection_path.stem not in _GENERIC
    return True if ours and of_one_op and settings().definitions_dir else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps what ``--op``, ``--dtype`` and ``--only`` choose."""
    chosen = [item for item in items if _is_chosen(item, config)]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def _is_chosen(item: pytest.Item, config: pytest.Config) -> bool:
    """Whether a test was asked for; test_ops.py chooses its ops itself, other files name theirs."""
    only, dtypes = config.getoption("--only"), config.getoption("--dtype")
    tested = getattr(item, "module", None)
    op = getattr(tested, "OP", None)
    return (
        (only is None or item.nodeid.partition("::")[2] == only)
        and (not dtypes or item.name.endswith(tuple(f"_{dtype}" for dtype in dtypes)))
        and (op is None or not settings().ops or op in settings().ops)
    )


class _Evidence:
    """Reaches the tests that a patch set brings too, which lie in another folder."""

    @pytest.fixture(autouse=True)
    def _attach_evidence(self, request: pytest.FixtureRequest) -> Iterator[None]:
        """Sends what a test has seen along with pytest's report of its teardown."""
        test = request.instance
        yield
        evidence = getattr(test, "evidence", None)
        if evidence is not None:
            request.node.user_properties.append((_EVIDENCE, evidence.to_json()))


class Reporter:
    """Writes the run's events to a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._stream = os.fdopen(descriptor, "w", buffering=1, encoding="utf-8")
        self._outcomes: dict[str, tuple[str, str]] = {}
        self._seconds: dict[str, float] = defaultdict(float)
        self._announced = False

    def _write(self, **event: Any) -> None:
        self._stream.write(json.dumps(event) + "\n")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:  # pytest-xdist's workers collect in this one's place
            self._announce(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self._announce(len(ids))

    def _announce(self, tests: int) -> None:
        if not self._announced:
            self._announced = True
            self._write(event="collected", tests=tests)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(event="broken", where=report.nodeid, message=str(report.longrepr))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        outcome, _ = self._outcomes.get(report.nodeid, ("passed", ""))
        if report.outcome != "passed" and outcome == "passed":
            self._outcomes[report.nodeid] = report.outcome, _message(report)
        crashed = report.when not in ("setup", "call", "teardown")
        if report.when == "teardown" or crashed:
            outcome, message = self._outcomes.pop(report.nodeid, ("passed", ""))
            evidence = dict(report.user_properties).get(_EVIDENCE)
            self._write(
                event="finished",
                test=report.nodeid,
                outcome=outcome,
                message=message,
                seconds=self._seconds.pop(report.nodeid),
                evidence=evidence,
            )


def _message(report: pytest.TestReport) -> str:
    """The error itself, without the frames that led to it."""
    if isinstance(report.longrepr, tuple):  # of a skipped test
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr)

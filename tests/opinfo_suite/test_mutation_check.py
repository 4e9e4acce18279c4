"""The mutation check itself: its faults can all be made, and two of them are caught."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from mpskit.errors import MpskitError

SCRIPT = Path(__file__).resolve().parents[2] / "ci/mutation_check.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutation_check", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


check = _load()
MUTATIONS = check.load_mutations()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_fault_can_be_made(mutation, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(check.PATCH_SET, tmp_path / "aten_patch"))
    mutation.apply(copy)
    assert (copy / mutation.file).read_text() != (check.PATCH_SET / mutation.file).read_text()


def test_names_are_given_once() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 20


def test_a_text_that_is_gone_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("twice twice")
    for find, times in (("gone", 0), ("twice", 2)):
        mutation = check.Mutation("name", "why", "file", ((find, ""),), "tests")
        with pytest.raises(MpskitError, match=f"'{find}' occurs {times} times in file"):
            mutation.apply(tmp_path)


def test_a_fault_in_a_kernel_and_one_in_the_plan_are_caught() -> None:
    outcome = subprocess.run(
        [sys.executable, str(SCRIPT), "sum_in_half", "u32_overflow_of_output"],
        capture_output=True,
        text=True,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert re.search(r"killed   sum_in_half by test_samples_\w+float32 ", outcome.stdout)
    assert re.search(r"killed   u32_overflow_of_output by test_sparse_out\w+ ", outcome.stdout)
    assert outcome.stdout.endswith("2 of 2 mutants killed\n")


def test_a_survivor_makes_the_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "first_failure", lambda *_: None)
    monkeypatch.setenv("MPSKIT_CACHE_DIR", "")  # restored afterwards
    outcome = CliRunner().invoke(check.main, ["sum_in_half"])
    assert outcome.exit_code == 1
    assert outcome.output.startswith("SURVIVED sum_in_half, a thread's sum has 11 significant bits")


def test_no_mutation_of_that_name() -> None:
    assert CliRunner().invoke(check.main, ["no_such_mutation"]).exit_code == 2

"""Expected failures that PyTorch's lists have for log_softmax on MPS, with the kernels in place.

An expected failure that the kernels lift must go, as its test would report an unexpected success,
and a claim that they do not meet must go too. The lists are those of the installed torch with the
patch's edits made. What a test of PyTorch's asks of an op is asked here of the kernels: MPS's side
of it on the kernels, the CPU's on torch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch._prims.context import TorchRefsMode
from torch.testing._internal.common_methods_invocations import op_db, python_ref_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from mpskit.patching import load_patch_set
from mpskit.patching.edits import State
from mpskit.verify.op_under_test import OpUnderTest

INTERNAL = "torch/testing/_internal"
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATING = (torch.float32, torch.float16, torch.bfloat16)
# PyTorch's comparison of MPS with the CPU allows small floats more; else what assert_close does.
TOLERANCES = {
    torch.float16: {"atol": 2e-2, "rtol": 1e-2},
    torch.bfloat16: {"atol": 5e-2, "rtol": 5e-2},
}
ENTRIES = {
    entry.name + entry.variant_test_name: entry
    for entry in op_db
    if entry.name in ("log_softmax", "masked.log_softmax", "nn.functional.cross_entropy")
}


def patched(path: str) -> str:
    """A file of the installed torch with the patch's edits."""
    text = (Path(torch.__file__).parents[1] / path).read_text()
    for patch in load_patch_set().patches:
        for edit in patch.edits:
            if edit.path == path:
                outcome = edit.evaluate(text, lambda _: None)
                assert outcome.state is State.TODO, outcome.reason
                text = outcome.text or text
    return text


def listed_in_common_mps(key: str) -> set[torch.dtype]:
    """The dtypes for which any list of common_mps.py expects an OpInfo entry to fail."""
    dtypes: set[torch.dtype] = set()
    for node in ast.walk(ast.parse(patched(f"{INTERNAL}/common_mps.py"))):
        if isinstance(node, ast.Dict):
            for name, value in zip(node.keys, node.values, strict=True):
                if isinstance(name, ast.Constant) and name.value == key:
                    dtypes |= set(eval(ast.unparse(value), {"torch": torch}))
    return dtypes


def mps_samples(entry: OpInfo, dtype: torch.dtype) -> Iterator[SampleInput]:
    """The samples that the entry has on MPS, on the CPU: bfloat16 in the place of float64."""
    for sample in entry.sample_inputs("cpu", dtype, requires_grad=dtype.is_floating_point):
        if sample.kwargs.get("dtype") == torch.float64:
            sample.kwargs = {**sample.kwargs, "dtype": torch.bfloat16}
        yield sample


def run(entry: OpInfo, sample: SampleInput) -> list[torch.Tensor]:
    """The result and, where there is one, the gradient for some gradient of the result."""
    result = entry(sample.input, *sample.args, **sample.kwargs)
    if not (result.requires_grad and result.numel()):
        return [result]
    torch.manual_seed(0)
    return [result, *torch.autograd.grad(result, sample.input, torch.rand_like(result))]


def is_consistent(entry: OpInfo, dtype: torch.dtype) -> bool:
    """Whether the kernels' results and gradients are close to the CPU's, for every sample."""
    for sample in mps_samples(entry, dtype):
        expected = run(entry, sample)
        with OpUnderTest():
            actual = run(entry, sample)
        try:
            torch.testing.assert_close(
                actual, expected, equal_nan=True, **TOLERANCES.get(dtype, {})
            )
        except AssertionError:
            return False
    return True


def runs(entry: OpInfo, dtype: torch.dtype) -> bool:
    """Whether the kernels take a dtype."""
    (sample, *_) = mps_samples(entry, dtype)
    try:
        with OpUnderTest():
            run(entry, sample)
    except NotImplementedError:
        return False
    return True


@pytest.mark.parametrize("key", ENTRIES)
def test_common_mps_expects_just_what_fails(key: str) -> None:
    """With a dtype, log_softmax stays listed: the CPU's bfloat16 kernel errs by too much."""
    entry = ENTRIES[key]
    dtypes = [dtype for dtype in (*FLOATING, *INTEGERS, torch.bool) if dtype in entry.dtypes]
    failing = {dtype for dtype in dtypes if not is_consistent(entry, dtype)}
    assert failing == listed_in_common_mps(key)


def test_it_is_the_cpu_that_errs_with_a_dtype() -> None:
    """Its kernel loses, in short rows, results that are close to 0."""
    x = torch.randint(-9, 9, (40, 5), generator=torch.Generator().manual_seed(0)).bfloat16()
    exact = torch.log_softmax(x.double(), 1).bfloat16()
    allowed = {"rtol": 0.016, "atol": 1e-5}  # assert_close's
    assert not torch.allclose(torch.log_softmax(x, 1), exact, **allowed)
    with OpUnderTest():
        assert torch.allclose(torch.log_softmax(x, 1), exact, **allowed)


@pytest.fixture(scope="module")
def masked() -> ModuleType:
    """PyTorch's module of OpInfo entries of masked ops, with the patch's edits."""
    name = "torch.testing._internal.opinfo.definitions._masked"
    module = ModuleType(name)
    exec(compile(patched(f"{name.replace('.', '/')}.py"), name, "exec"), module.__dict__)
    return module


def test_masked_log_softmax_claims_just_what_runs(masked: ModuleType) -> None:
    (entry,) = (each for each in masked.op_db if each.name == "masked.log_softmax")
    claimed = entry.supported_dtypes("mps")
    for dtype in (*FLOATING, *INTEGERS):
        assert runs(entry, dtype) == (dtype in claimed), dtype
    assert not any(decorator.device_type == "mps" for decorator in entry.decorators)


def test_log_softmax_claims_just_what_runs() -> None:
    """So PyTorch's test of claimed dtypes passes, and must not be expected to fail."""
    entry = ENTRIES["log_softmax"]
    for dtype in (*FLOATING, *INTEGERS, torch.bool, torch.complex64):
        assert runs(entry, dtype) == (dtype in entry.supported_dtypes("mps")), dtype
    (call,) = entries_in_source("log_softmax")
    assert "test_dtypes" not in ast.unparse(call)
    assert "test_dtypes" in str([d.test_name for d in entry.decorators])  # before the edit


def entries_in_source(name: str) -> list[ast.Call]:
    """The calls that make the OpInfo entries of a name and no variant, with the patch's edits."""
    tree = ast.parse(patched(f"{INTERNAL}/common_methods_invocations.py"))
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "OpInfo"
        and node.args
        and getattr(node.args[0], "value", None) == name
        and "variant_test_name" not in [keyword.arg for keyword in node.keywords]
    ]


@pytest.mark.parametrize(
    "name", ["_refs.log_softmax", "_refs.special.log_softmax", "_refs.nn.functional.log_softmax"]
)
def test_python_references_are_expected_to_differ_just_where_they_do(name: str) -> None:
    """They do not round the input to bfloat16 first, as every backend does."""
    (reference,) = (entry for entry in python_ref_db if entry.name == name)
    expected_to_fail = {
        dtype
        for decorator in reference.decorators
        if decorator.device_type == "mps" and decorator.test_name == "test_python_ref"
        for dtype in decorator.dtypes
    }
    entry = ENTRIES["log_softmaxwith_dtype"]
    differing = {dtype for dtype in (*FLOATING, *INTEGERS) if not agrees(reference, entry, dtype)}
    assert differing == {dtype for dtype in expected_to_fail if not dtype.is_complex}


def agrees(reference: Any, entry: OpInfo, dtype: torch.dtype) -> bool:
    """What PyTorch's test of references asks: close to the kernels, or closer to the truth.

    The second does for dtypes other than float32, the widest that MPS has.
    """
    off, kernels_off = 0.0, 0.0
    for sample in mps_samples(entry, dtype):
        with TorchRefsMode(strict=True):
            expected = reference(sample.input, *sample.args, **sample.kwargs)
        with OpUnderTest():
            actual = entry(sample.input, *sample.args, **sample.kwargs)
        try:
            torch.testing.assert_close(actual, expected)
        except AssertionError:
            if dtype == torch.float32:
                return False
            exact = torch.log_softmax(sample.input.double(), *sample.args)
            off += (expected - exact).abs().sum().item()
            kernels_off += (actual - exact).abs().sum().item()
    return off <= kernels_off

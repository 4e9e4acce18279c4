from __future__ import annotations

from mpskit.patching.native_functions import dispatch_table

YAML = """\
- func: _log_softmax(Tensor self, int dim) -> Tensor
  structured_delegate: _log_softmax.out

- func: _log_softmax.out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU, CUDA: log_softmax_out  # both
    SparseCPU: at::sparse_out
    MPS: log_softmax_mps_out
  tags: core

- func: relu(Tensor self) -> Tensor
  dispatch:
    MPS: relu_mps
"""


def test_kernel_by_dispatch_key() -> None:
    table = {
        "CPU": "log_softmax_out",
        "CUDA": "log_softmax_out",
        "SparseCPU": "at::sparse_out",
        "MPS": "log_softmax_mps_out",
    }
    assert dispatch_table(YAML, "_log_softmax.out") == table
    assert dispatch_table(YAML.replace("\n", "\r\n"), "_log_softmax.out") == table
    assert dispatch_table(YAML, "relu") == {"MPS": "relu_mps"}


def test_functions_without_dispatch_and_missing_ones() -> None:
    assert dispatch_table(YAML, "_log_softmax") == {}
    assert dispatch_table(YAML, "log_softmax") is None
    assert dispatch_table("", "relu") is None
